package transporttest

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// unanswered says, after what should be answered within d, that it is not: how the
// response looks instead, and what the server has to say.
func (r *request) unanswered(d time.Duration) string {
	if r.x == nil {
		return fmt.Sprintf("is not answered within %s%s%s", d, r.c.outputEnd(), r.c.lastWords())
	}
	return r.instead(d) + r.c.lastWords()
}

// instead says what has come on the response in place of an answer.
func (r *request) instead(d time.Duration) string {
	select {
	case <-r.x.Done():
	default:
		if status := r.x.Status(); status != 0 {
			return fmt.Sprintf("is not answered within %s (HTTP status %d, and the response goes on)", d, status)
		}
		return fmt.Sprintf("is not answered within %s", d)
	}
	if status := r.x.Status(); status == 0 {
		return fmt.Sprintf("is not answered: %.200s", fmt.Sprint(r.x.Err()))
	}
	return "is answered with " + r.x.Head() + r.content()
}

// content says what is in a response that is no answer.
func (r *request) content() string {
	if err := r.x.Err(); err != nil {
		return fmt.Sprintf(", and the response breaks off: %.200s", err)
	}
	e, found := r.c.p.log.Find(r.from, func(e wire.Entry) bool {
		return e.Stream == r.x.Stream && (e.Kind == wire.Garbage || e.Kind == wire.Received)
	})
	switch {
	case !found && r.x.Status() == http.StatusOK:
		return " and no message"
	case !found:
		return ""
	case e.Kind == wire.Received:
		return fmt.Sprintf(" and another message: %.200s", e.Message.Raw)
	}
	return fmt.Sprintf(" and what is no message: %.80q", strings.Join(strings.Fields(e.Text), " "))
}

// outputEnd says how the output of a server has ended, "" when it has not.
func (c *client) outputEnd() string {
	select {
	case <-c.stream.Ended():
	default:
		return ""
	}
	if err := c.stream.Err(); err != nil {
		return "; its output is read no further: " + err.Error()
	}
	return "; its output has ended"
}
