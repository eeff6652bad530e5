package skills

import (
	"math/big"
	"strings"
)

// jsonNumber writes a decimal number of YAML as JSON has it: no plus, no zeros in front, digits
// on both sides of the point. Its value stays exactly the same.
func jsonNumber(v string) string {
	sign := ""
	if v[0] == '-' {
		sign = "-"
	}
	v = strings.TrimLeft(v, "+-")
	exponent := ""
	if i := strings.IndexAny(v, "eE"); i >= 0 {
		v, exponent = v[:i], v[i:]
	}
	whole, fraction, _ := strings.Cut(v, ".")
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return sign + whole + exponent
}

// based writes a number of another base, 0o… or 0x…, in the decimal one.
func based(v string) string {
	base := 8
	if v[1] == 'x' {
		base = 16
	}
	n, _ := new(big.Int).SetString(v[2:], base)
	return n.String()
}
