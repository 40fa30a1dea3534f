// SPDX-License-Identifier: Apache-2.0

package standing

import (
	"net"
	"regexp"
	"strings"
)

// ofOne stands in a template for a name that only one cluster has.
const ofOne = "*"

// podName matches the name of a pod with the parts that a ReplicaSet, a DaemonSet or a StatefulSet adds, which have no vowels.
var podName = regexp.MustCompile(`^(.+?)(-[bcdfghjklmnpqrstvwxz2456789]{6,10})?-([bcdfghjklmnpqrstvwxz2456789]{5}|[0-9]{1,4})$`)

// templateOf returns a message without the names that only its cluster has: the cluster's own, also as part of a Secret's, and
// those of pods. With hosts, addresses of servers count as such, too: of a cluster's own server, and not of a chart's.
// Clusters whose messages have the same template have the same cause.
func templateOf(message, cluster string, hosts bool) string {
	words, before := strings.Fields(message), ""
	for i, word := range words {
		is := strings.Trim(word, `"'(),;:.`)
		if common := commonPart(before, is, cluster, hosts); common != is {
			words[i] = strings.Replace(word, is, common, 1)
		}
		before = strings.ToLower(is)
	}
	return strings.Join(words, " ")
}

// commonPart returns a word without what is of one cluster.
func commonPart(before, word, cluster string, hosts bool) string {
	switch {
	case before == "pod" || before == "pods":
		return podName.ReplaceAllString(word, "$1")
	case hosts || before == "tcp" || before == "udp": // as the network's errors name addresses within the cluster
		if isAddress(word) {
			return ofOne
		}
	}
	if !strings.Contains(word, cluster) {
		return word
	}
	parts := strings.Split(word, "/")
	for i, part := range parts {
		if part == cluster {
			parts[i] = ofOne
		} else if rest, found := strings.CutPrefix(part, cluster+"-"); found {
			parts[i] = ofOne + "-" + rest
		} else if rest, found := strings.CutSuffix(part, "-"+cluster); found {
			parts[i] = rest + "-" + ofOne
		}
	}
	return strings.Join(parts, "/")
}

// isAddress reports whether a word is host:port or an URL.
func isAddress(word string) bool {
	if strings.Contains(word, "://") {
		return true
	}
	if !strings.Contains(word, ":") {
		return false
	}
	host, port, err := net.SplitHostPort(word)
	return err == nil && host != "" && port != "" && strings.Trim(port, "0123456789") == ""
}

// brokenPart returns what the messages of a Degraded add-on have in common if the same is broken: the object, and the image that
// can't be pulled. All else counts pods, or is the cluster's word.
func brokenPart(message string) string {
	object, image := "", ""
	words := strings.Fields(message)
	for i, word := range words {
		if object == "" && strings.HasSuffix(word, ":") && i > 0 {
			object = words[i-1] + " " + word
		}
		if image == "" && i > 0 && words[i-1] == "image" {
			image = strings.TrimRight(word, ":.,")
		}
	}
	return object + " " + image
}

// Keys are those of causes, by their messages. Clusters with an equal message have the same cause, though it may have the name of one of them.
type Keys map[string]string

// Of returns the key of a cause. The same is so of all clusters with the same common part.
func (k Keys) Of(common, message, template string) string {
	message, template = common+" m "+message, common+" t "+template
	if key, known := k[message]; known {
		return key
	}
	k[message] = template
	return template
}
