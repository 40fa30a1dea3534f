// SPDX-License-Identifier: Apache-2.0

package room

import (
	"context"
	"errors"
	"io"
	"slices"

	orascontent "oras.land/oras-go/v2/content"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// Little is what each answer may have without asking for room: most charts do.
const Little = 256 << 10 // bytes

const smallBody = Little

// Read reads the body of an answer, but no more of it than is accepted. Its length is
// not positive if it isn't known.
func Read(ctx context.Context, body io.Reader, length int64, what string, most int64) ([]byte, error) {
	data, err := readInRoom(ctx, body, length, what, most)
	return data, Why(ctx, err)
}

// Why is the error of who reads with the context: that it had to make room for others,
// if that is so.
func Why(ctx context.Context, err error) error {
	var known, slow *failure.Error
	if err != nil && !errors.As(err, &known) && errors.As(context.Cause(ctx), &slow) {
		return slow
	}
	return err
}

func readInRoom(ctx context.Context, body io.Reader, length int64, what string, most int64) ([]byte, error) {
	if err := Begin(ctx); err != nil {
		return nil, err
	}
	body = Measured(ctx, body)
	start, err := io.ReadAll(io.LimitReader(body, min(most, smallBody)+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(start)) > most:
		return nil, failure.TooLarge(what, most)
	case len(start) <= smallBody:
		return start, nil
	}
	entered, ok := ctx.Value(readingKey{}).(*Reading)
	if !ok {
		return nil, errors.New("a large answer is read outside of a visit")
	}
	need := most
	if length > smallBody && length < most {
		need = length
	}
	taken, err := entered.take(ctx, need)
	if err != nil {
		return nil, err
	}
	data, err := fill(append(make([]byte, 0, need+1), start...), body) // one more, to tell the end from the limit
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > most:
		return nil, failure.TooLarge(what, most)
	case int64(len(data)) > need:
		return nil, orascontent.ErrTrailingData
	}
	if unused := need - int64(len(data)); unused > smallBody && unused <= taken {
		data = slices.Clone(data)
		entered.giveBack(unused)
	}
	return data, nil
}

// fill appends what the body has, up to the capacity.
func fill(data []byte, body io.Reader) ([]byte, error) {
	for len(data) < cap(data) {
		n, err := body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return data, nil
}

// Measured is a body of the reading that the context is of.
func Measured(ctx context.Context, body io.Reader) io.Reader {
	if entered, ok := ctx.Value(readingKey{}).(*Reading); ok {
		return io.TeeReader(body, (*counter)(entered))
	}
	return body
}

type counter Reading

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	for r := (*Reading)(c); r != nil; r = r.outer {
		r.came.Add(int64(len(p)))
	}
	return len(p), nil
}

// Begin takes the room that an answer needs from its first byte on, where there is to be
// some: before that, it takes none. So who is silent holds up nobody.
func Begin(ctx context.Context) error {
	entered, _ := ctx.Value(readingKey{}).(*Reading)
	for ; entered != nil; entered = entered.outer {
		if _, err := entered.take(ctx, entered.room.Each); err != nil {
			return err
		}
	}
	return nil
}

// Reserve takes room for all that will be read with the context, if that is much.
func Reserve(ctx context.Context, bytes int64) error {
	entered, ok := ctx.Value(readingKey{}).(*Reading)
	if !ok || bytes <= smallBody {
		return nil
	}
	_, err := entered.take(ctx, bytes)
	return err
}
