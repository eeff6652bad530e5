package server_test

import "testing"

func TestCase01_CancelledCallIsNeverAnswered(t *testing.T) {
	for _, tool := range []string{"cancel_wait", "cancel_value", "cancel_error", "cancel_foreign", "cancel_panic"} {
		t.Run(tool, func(t *testing.T) {
			eachEra(t, func(t *testing.T, f *fixture, p *peer) {
				p.Call(1, tool, tagged{Tag: "a"})
				f.Await("a", "started")
				p.Cancel(1, "r")
				f.Await("a", "observed")
				f.Done(1)
				p.Silent(1)
				p.Call(2, "echo", M{"text": "still here"})
				p.Text(2)
			})
		})
	}
}
