package main

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
)

// picture is a small PNG: one red pixel.
var picture = func() []byte {
	pixel := image.NewNRGBA(image.Rect(0, 0, 1, 1))
	pixel.Set(0, 0, color.NRGBA{R: 0xff, A: 0xff})
	var b bytes.Buffer
	if err := png.Encode(&b, pixel); err != nil {
		panic(err) // it is the same pixel every time
	}
	return b.Bytes()
}()

// sound is a short WAV: ten milliseconds of silence, 8 kHz, 8 bits, mono.
var sound = func() []byte {
	const (
		rate    = 8000
		samples = rate / 100
		silence = 0x80
		header  = 36 // bytes of the file before the samples, after the first length
	)
	b := []byte("RIFF")
	b = binary.LittleEndian.AppendUint32(b, header+samples)
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)   // length of the format
	b = binary.LittleEndian.AppendUint16(b, 1)    // PCM
	b = binary.LittleEndian.AppendUint16(b, 1)    // channels
	b = binary.LittleEndian.AppendUint32(b, rate) // samples a second
	b = binary.LittleEndian.AppendUint32(b, rate) // bytes a second
	b = binary.LittleEndian.AppendUint16(b, 1)    // bytes per sample
	b = binary.LittleEndian.AppendUint16(b, 8)    // bits per sample
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, samples)
	return append(b, bytes.Repeat([]byte{silence}, samples)...)
}()
