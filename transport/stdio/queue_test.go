package stdio_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/heedmcp/heed/transport/stdio"
	"github.com/stretchr/testify/assert"
)

func notification(i int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d}}`, i)
}

const (
	nested    = `{"jsonrpc":"2.0","id":1,"method":"roots/list"}`
	retracted = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
)

func TestInvariant_W1_OneMessageOfEachRequest(t *testing.T) {
	var q stdio.Queue
	var a, b stdio.Reply
	for i := range 3 {
		q.Push(notification(i), &a)
		q.Push(notification(10+i), &b)
	}
	q.Push("last", nil)
	for i := range 2 {
		assert.Equal(t, notification(i)+"\n"+notification(10+i)+"\n", q.Take())
	}
	a.Settle()
	q.Push(notification(3), &a)
	assert.Equal(t, notification(2)+"\n"+notification(12)+"\nlast\n"+notification(3)+"\n", q.Take(),
		"a settled request cannot be cancelled any more")
	assert.Empty(t, q.Take())
}

func TestInvariant_W1_WritesAreBounded(t *testing.T) {
	var q stdio.Queue
	var r stdio.Reply
	long := strings.Repeat("x", stdio.MaxWrite*5/2)
	q.Push(long, &r)
	q.Push("second", &r)
	all := q.Take()
	assert.Len(t, all, stdio.MaxWrite)
	all += q.Take()
	all += q.Take()
	assert.Equal(t, long+"\n", all, "the second message must not ride with the tail of the first")
	assert.Equal(t, "second\n", q.Take())
}

func TestInvariant_W2_WithdrawTakesOutNotifications(t *testing.T) {
	var q stdio.Queue
	var a, b stdio.Reply
	q.Push(notification(0), &a)
	q.Push(notification(1), &a)
	q.Push(notification(10), &b)
	q.Push(nested, &a)
	q.Push(notification(2), &a)
	q.Push(retracted, &a)
	q.Push("answer of another", nil)
	assert.Equal(t, notification(0)+"\n", q.Take(), "this one is being written")
	q.Withdraw(&a)
	q.Push(notification(11), &b)
	assert.Equal(t, notification(10)+"\n"+nested+"\n", q.Take())
	assert.Equal(t, retracted+"\nanswer of another\n"+notification(11)+"\n", q.Take())
	q.Withdraw(&a)
	q.Withdraw(&b)
	assert.Empty(t, q.Take())
}
