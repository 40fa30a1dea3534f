// SPDX-License-Identifier: Apache-2.0

package keptvalues

import (
	"encoding/json"
	"reflect"
)

func encodeGenerated(value reflect.Value) string {
	if value.Kind() == reflect.String {
		return value.String()
	}
	text, err := json.Marshal(value.Interface())
	if err != nil {
		panic(err) // ints and structs of strings only
	}
	return string(text)
}

func decodeGenerated(typ reflect.Type, text string) (reflect.Value, error) {
	value := reflect.New(typ)
	if typ.Kind() == reflect.String {
		value.Elem().SetString(text)
		return value.Elem(), nil
	}
	err := json.Unmarshal([]byte(text), value.Interface())
	return value.Elem(), err
}
