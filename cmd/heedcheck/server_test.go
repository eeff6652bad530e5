package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// lines gives each line of the input to f, until it ends.
func lines(f func(line string)) {
	scanner := bufio.NewScanner(os.Stdin)
	for scanner.Scan() {
		f(scanner.Text())
	}
}

// answer answers a request in a way that keeps a client going: with one tool.
func answer(line string) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal([]byte(line), &m) != nil || m.ID == nil {
		return
	}
	fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"wait","inputSchema":{"type":"object","properties":{"ms":{"type":"integer"}}}}]}}`+"\n", m.ID)
}
