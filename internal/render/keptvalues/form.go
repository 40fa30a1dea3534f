// SPDX-License-Identifier: Apache-2.0

package keptvalues

import (
	"crypto/aes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/Masterminds/sprig/v3"
)

// generating is a function that returns something else each time.
type generating struct {
	// form reports whether the function may return a text for some arguments.
	form func(text string, args []reflect.Value) bool
	// password says that an argument is one: its hash must be slow to guess.
	password bool
}

// remembered are sprig's functions that return something else each time, apart from those
// that tell the time (clock.go) and keys and values, which only need an order.
var remembered = map[string]generating{
	"randAlphaNum": {form: random(`^[0-9A-Za-z]*$`)}, "randAlpha": {form: random(`^[A-Za-z]*$`)},
	"randNumeric": {form: random(`^[0-9]*$`)}, "randAscii": {form: random(`^[ -~]*$`)},
	"randBytes": {form: isRandomBytes}, "randInt": {form: isInRange},
	"uuidv4":        {form: matches(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)},
	"shuffle":       {form: isShuffled},
	"genPrivateKey": {form: func(text string, _ []reflect.Value) bool { return isPEM(text, isKey, 1) }},
	"genCA":         {form: isCertificate}, "genCAWithKey": {form: isCertificate},
	"genSelfSignedCert": {form: isCertificate}, "genSelfSignedCertWithKey": {form: isCertificate},
	"genSignedCert": {form: isCertificate}, "genSignedCertWithKey": {form: isCertificate},
	"bcrypt": {form: isHash, password: true}, "htpasswd": {form: isLogin, password: true}, "encryptAES": {form: isEncrypted, password: true},
}

// verdict says how an earlier value fits its call; 0 before that was evaluated.
type verdict int

const (
	unfit verdict = iota + 1
	// odd is a line of other text, as a person may have set it in the object that Chandler took it from.
	odd
	fit
)

// evaluate returns how a text fits a call whose function returns values of a type, and the text without
// fields that the type lacks.
func (fn generating) evaluate(text string, typ reflect.Type, args []reflect.Value) (string, verdict) {
	value, err := decodeGenerated(typ, text)
	if err != nil {
		return text, unfit
	}
	text = encodeGenerated(value)
	switch {
	case fn.form(text, args):
		return text, fit
	case typ.Kind() == reflect.String && isLine(strings.TrimSuffix(text, "\n")):
		return text, odd
	}
	return text, unfit
}

func isLine(text string) bool {
	return text != "" && utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

func matches(pattern string) func(string, []reflect.Value) bool {
	expression := regexp.MustCompile(pattern)
	return func(text string, _ []reflect.Value) bool { return expression.MatchString(text) }
}

// random is for functions whose argument is a number of ASCII characters.
func random(pattern string) func(string, []reflect.Value) bool {
	alphabet := matches(pattern)
	return func(text string, args []reflect.Value) bool {
		return int64(len(text)) == max(args[0].Int(), 0) && alphabet(text, args)
	}
}

// isBase64 reports whether a text is n bytes in base64. The decoder alone would skip line breaks.
func isBase64(text string, n int64) bool {
	data, err := base64.StdEncoding.DecodeString(text)
	return err == nil && int64(len(data)) == n && base64.StdEncoding.EncodeToString(data) == text
}

func isRandomBytes(text string, args []reflect.Value) bool { return isBase64(text, args[0].Int()) }

func isInRange(text string, args []reflect.Value) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && n >= args[0].Int() && n < args[1].Int()
}

func isShuffled(text string, args []reflect.Value) bool {
	is, of := []rune(text), []rune(args[0].String())
	slices.Sort(is)
	slices.Sort(of)
	return utf8.ValidString(text) && slices.Equal(is, of)
}

var isHash = matches(`^\$2a\$10\$[./0-9A-Za-z]{53}$`)

func isLogin(text string, args []reflect.Value) bool {
	hash, ok := strings.CutPrefix(text, args[0].String()+":")
	return ok && isHash(hash, nil)
}

// isEncrypted is for an initialization vector, and the plain text with a padding of at least one byte.
func isEncrypted(text string, args []reflect.Value) bool {
	blocks := 1 + args[1].Len()/aes.BlockSize + 1
	return args[1].Len() > 0 && isBase64(text, int64(blocks*aes.BlockSize)) || args[1].Len() == 0 && text == ""
}

// maxChain bounds the certificates in place of one: a person may have set a chain.
const maxChain = 16

func isCertificate(text string, _ []reflect.Value) bool {
	var pair struct{ Cert, Key string }
	return json.Unmarshal([]byte(text), &pair) == nil && isPEM(pair.Cert, isX509, maxChain) && isPEM(pair.Key, isKey, 1)
}

// isPEM reports whether a text is PEM blocks of a kind, at least one and at most n, and nothing else.
// The last line break may be missing.
func isPEM(text string, kind func(*pem.Block) bool, n int) bool {
	var again strings.Builder
	for rest := []byte(text); len(rest) > 0; n-- {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || n == 0 || len(block.Headers) > 0 || !kind(block) {
			return false
		}
		again.Write(pem.EncodeToMemory(block))
	}
	return text != "" && strings.TrimSuffix(text, "\n") == strings.TrimSuffix(again.String(), "\n")
}

func isX509(block *pem.Block) bool {
	_, err := x509.ParseCertificate(block.Bytes)
	return err == nil && block.Type == "CERTIFICATE"
}

// maxKey bounds a key, in bytes: large ones take long to read. RSA of 8192 bits takes 5 KiB.
const maxKey = 8 << 10

// isKey is for the kinds that sprig makes.
func isKey(block *pem.Block) bool {
	if len(block.Bytes) > maxKey {
		return false
	}
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		_, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		_, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		_, err = x509.ParseECPrivateKey(block.Bytes)
	case "DSA PRIVATE KEY":
		_, err = asn1.Unmarshal(block.Bytes, &sprig.DSAKeyFormat{})
	default:
		return false
	}
	return err == nil
}
