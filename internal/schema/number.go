package schema

import (
	"bytes"
	"iter"
	"strconv"
	"strings"
)

// numbers yields where the numbers in a JSON text start and end.
func numbers(raw []byte) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for i := 0; i < len(raw); i++ {
			switch c := raw[i]; {
			case c == '"':
				for i++; i < len(raw) && raw[i] != '"'; i++ {
					if raw[i] == '\\' {
						i++
					}
				}
			case c == '-' || '0' <= c && c <= '9':
				start := i
				for i < len(raw) && strings.IndexByte("+-.eE0123456789", raw[i]) >= 0 {
					i++
				}
				if !yield(start, i) {
					return
				}
				i--
			}
		}
	}
}

// plainIntegers writes integral numbers without fraction and exponent: 1.0 and 10e-1 become 1. Numbers beyond
// 64 bits stay as they are; no Go integer could hold them.
func plainIntegers(raw []byte) (out []byte, changed bool) {
	last := 0
	for start, end := range numbers(raw) {
		text, ok := plainInteger(raw[start:end])
		if !ok {
			continue
		}
		out = append(append(out, raw[last:start]...), text...)
		last = end
		changed = true
	}
	return append(out, raw[last:]...), changed
}

func plainInteger(number []byte) (string, bool) {
	if !bytes.ContainsAny(number, ".eE") || len(number) > maxNumberLength {
		return "", false
	}
	mantissa, exponent := string(number), 0
	if i := strings.IndexAny(mantissa, "eE"); i >= 0 {
		n, err := strconv.Atoi(mantissa[i+1:])
		if err != nil || n < -maxExponent || n > maxExponent {
			return "", false
		}
		mantissa, exponent = mantissa[:i], n
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	point := len(whole) + exponent // where the decimal point stands in digits
	switch {
	case strings.Trim(digits, "0") == "":
		return "0", true
	case point <= 0:
		return "", false
	case point < len(digits):
		if strings.Trim(digits[point:], "0") != "" {
			return "", false
		}
		digits = digits[:point]
	default:
		digits += strings.Repeat("0", point-len(digits))
	}
	if digits = strings.TrimLeft(digits, "0"); len(digits) > 20 {
		return "", false
	}
	if negative {
		digits = "-" + digits
	}
	return digits, true
}

// beyond64 says that a number is written as an integer and fits neither int64 nor uint64.
func beyond64(number []byte) bool {
	if len(number) < 20 || bytes.ContainsAny(number, ".eE") {
		return false
	}
	if number[0] == '-' {
		_, err := strconv.ParseInt(string(number), 10, 64)
		return err != nil
	}
	_, err := strconv.ParseUint(string(number), 10, 64)
	return err != nil
}
