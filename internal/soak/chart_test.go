package soak_test

import (
	"fmt"
	"slices"
	"strings"
)

const (
	chartWidth  = 720.0
	chartHeight = 260.0
	chartLeft   = 60.0
	chartTop    = 20.0
)

// chart draws lines over time, each against its own maximum, as SVG.
func chart(title string, samples []sample, series map[string]func(sample) float64, unit string) string {
	colours := []string{"#1f6feb", "#d29922", "#cf222e"}
	names := make([]string, 0, len(series))
	highest := 0.0
	for name, value := range series {
		names = append(names, name)
		for _, s := range samples {
			highest = max(highest, value(s))
		}
	}
	slices.Sort(names)
	span := max(samples[len(samples)-1].at.Seconds(), 1)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12" role="img" aria-label="%s">`+"\n",
		chartLeft+chartWidth+20, chartTop+chartHeight+50, title)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#ffffff"/><text x="%.0f" y="14" font-weight="bold">%s</text>`+"\n", chartLeft, title)
	for i := range 5 {
		y := chartTop + chartHeight*float64(i)/4
		fmt.Fprintf(&b, `<line x1="%.0f" y1="%.1f" x2="%.0f" y2="%.1f" stroke="#d0d7de"/><text x="%.0f" y="%.1f" text-anchor="end">%.3g %s</text>`+"\n",
			chartLeft, y, chartLeft+chartWidth, y, chartLeft-4, y+4, highest*float64(4-i)/4, unit)
	}
	for i := range 6 {
		fmt.Fprintf(&b, `<text x="%.0f" y="%.0f" text-anchor="middle">%.0f s</text>`+"\n", chartLeft+chartWidth*float64(i)/5, chartTop+chartHeight+18, span*float64(i)/5)
	}
	for i, name := range names {
		var points []string
		for _, s := range samples {
			points = append(points, fmt.Sprintf("%.1f,%.1f", chartLeft+chartWidth*s.at.Seconds()/span, chartTop+chartHeight*(1-series[name](s)/max(highest, 1e-9))))
		}
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/><text x="%.0f" y="%.0f" fill="%s">%s</text>`+"\n",
			colours[i%len(colours)], strings.Join(points, " "), chartLeft+150*float64(i), chartTop+chartHeight+40, colours[i%len(colours)], name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
