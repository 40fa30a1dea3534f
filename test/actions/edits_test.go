// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"maps"
	"slices"
)

// editStack changes what is wanted of a stack and its components, and writes it. An allowance of the previous edit ends.
func (f *fleet) editStack(s int, mutate func(*model)) {
	f.t.Helper()
	f.change(func(m *model) {
		m.stacks[s].allowed, m.stacks[s].leaving = nil, nil
		mutate(m)
	}, func() { f.writeStack(s) })
	f.now().stacks[s].leaving = nil // it was for this edit alone
}

// stackWith returns the stack that has the component, -1 for none.
func (m *model) stackWith(k int) int {
	return slices.IndexFunc(m.stacks[:], func(s stack) bool { return s.exists && s.has[k] })
}

// isLast reports whether the stack has nothing but the component.
func (s *stack) isLast(k int) bool {
	others := s.has
	others[k] = false
	return !slices.Contains(others[:], true)
}

// allow has an edit allow that a release is removed.
func (s *stack) allow(release string) {
	allowed := map[string]bool{release: true}
	maps.Copy(allowed, s.allowed)
	s.allowed = allowed
}

// changeText edits a component, or the Secret with its text.
func (f *fleet) changeText() bool {
	k := f.random.IntN(components)
	s := f.now().stackWith(k)
	if s < 0 {
		return false
	}
	isExtra := f.random.IntN(3) == 0
	mutate := func(m *model) {
		m.components[k].text++
		if isExtra {
			m.components[k].extra = !m.components[k].extra
		}
	}
	f.act("change %s of %s, its extra: %t", f.now().release(k), stackName(s), isExtra)
	f.editStack(s, mutate)
	if k == withSecret {
		f.writeValues()
	}
	return true
}

// drop takes a component out of its stack, and may allow that it is removed.
func (f *fleet) drop() bool {
	k := f.random.IntN(components)
	s := f.now().stackWith(k)
	if s < 0 || f.now().stacks[s].isLast(k) {
		return false
	}
	isAllowed, release := f.random.IntN(2) == 0, f.now().release(k)
	f.act("drop %s from %s, allowed: %t", release, stackName(s), isAllowed)
	f.editStack(s, func(m *model) {
		m.stacks[s].has[k] = false
		if isAllowed {
			m.stacks[s].allow(release)
		}
	})
	return true
}

// add puts a component that no stack has into one, by any of its names.
func (f *fleet) add() bool {
	k, s, name := f.random.IntN(components), f.random.IntN(stacks), f.random.IntN(names)
	for range components { // the next that is in no stack
		if f.now().stackWith(k) >= 0 {
			k = (k + 1) % components
		}
	}
	if !f.now().stacks[s].exists || f.now().stackWith(k) >= 0 {
		return false
	}
	f.act("add %s-%d to %s", componentName(k), name, stackName(s))
	f.editStack(s, func(m *model) { m.stacks[s].has[k], m.components[k].name = true, name })
	return true
}

// rename gives a component another name, and may allow that the previous one is removed.
func (f *fleet) rename() bool {
	k, isAllowed := f.random.IntN(components), f.random.IntN(2) == 0
	s := f.now().stackWith(k)
	if s < 0 {
		return false
	}
	name, previous := (f.now().components[k].name+1+f.random.IntN(names-1))%names, f.now().release(k)
	f.act("rename %s of %s to %s-%d, allowed: %t", previous, stackName(s), componentName(k), name, isAllowed)
	f.editStack(s, func(m *model) {
		m.components[k].name = name
		if isAllowed {
			m.stacks[s].allow(previous)
		}
	})
	return true
}

// transfer has a component go from one stack to another, which has it by the same name.
func (f *fleet) transfer() bool {
	k, to, isFirst := f.random.IntN(components), f.random.IntN(stacks), f.random.IntN(2) == 0
	from := f.now().stackWith(k)
	if from < 0 || from == to || !f.now().stacks[to].exists || f.now().stacks[from].isLast(k) {
		return false
	}
	f.act("transfer %s from %s to %s, there first: %t", f.now().release(k), stackName(from), stackName(to), isFirst)
	there := func() { f.editStack(to, func(m *model) { m.stacks[to].has[k] = true }) }
	if isFirst {
		there()
	}
	f.editStack(from, func(m *model) { m.stacks[from].has[k] = false })
	if !isFirst {
		there()
	}
	return true
}

var selectors = []map[string]string{{"env": "prod"}, {"env": "test"}, {"tier": "gold"}, {"tier": "silver"}, {}, {"env": "prod", "tier": "gold"}}

// reselect has a stack select other clusters, and may allow that those before lose it.
func (f *fleet) reselect() bool {
	s, selector, isAllowed := f.random.IntN(stacks), selectors[f.random.IntN(len(selectors))], f.random.IntN(2) == 0
	previous := f.now().stacks[s].selector
	if !f.now().stacks[s].exists || maps.Equal(previous, selector) {
		return false
	}
	f.act("have %s select %v, others allowed: %t", stackName(s), selector, isAllowed)
	f.editStack(s, func(m *model) {
		m.stacks[s].selector = selector
		if isAllowed {
			m.stacks[s].leaving = previous
		}
	})
	return true
}

// setLimit lifts the limit of a stack, or sets it.
func (f *fleet) setLimit() bool {
	s := f.random.IntN(stacks)
	if !f.now().stacks[s].exists {
		return false
	}
	f.act("lift the limit of %s: %t", stackName(s), !f.now().stacks[s].isFree)
	f.editStack(s, func(m *model) { m.stacks[s].isFree = !m.stacks[s].isFree })
	return true
}

// toggleStack deletes a stack, or makes one again.
func (f *fleet) toggleStack() bool {
	s := f.random.IntN(stacks)
	if gone := f.now().goneStack(); gone >= 0 && f.random.IntN(3) > 0 {
		s = gone
	}
	if !f.now().stacks[s].exists {
		f.makeStack(s)
		return true
	}
	f.deleteStack(s)
	return true
}

// goneStack returns a stack that isn't there, -1 if all are.
func (m *model) goneStack() int {
	return slices.IndexFunc(m.stacks[:], func(s stack) bool { return !s.exists })
}

// makeStack makes a stack as it was, without components that another one has got.
func (f *fleet) makeStack(s int) {
	f.act("make %s again", stackName(s))
	left := f.now().stacks[s].has
	for k := range components {
		left[k] = left[k] && f.now().stackWith(k) < 0
	}
	f.editStack(s, func(m *model) {
		m.stacks[s].exists, m.stacks[s].has = true, left
		m.stacks[s].paused, m.stacks[s].sealed, m.stacks[s].orphan = false, false, false
	})
}
