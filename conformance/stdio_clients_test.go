package conformance_test

import "testing"

// The oldest revision that there is.
const oldestOverStdio = "2024-11-05"

// clientsAtOnce is how many clients run at the same time, each with a server of its own. They
// wait more than they work.
const clientsAtOnce = 5

// Clients list, call, follow progress, answer nested requests, cancel and
// close over stdio, and report no error meanwhile.
func TestClientsOverStdio(t *testing.T) {
	server := everything(t)
	var visits []*visit
	for _, c := range clients(oldestOverStdio) {
		visits = append(visits, &visit{client: c, flags: []string{c.patience(surely)}, target: []string{"--", server, "stdio"}})
	}
	runAll(t, visits, clientsAtOnce)
	for _, v := range visits {
		t.Run(v.client.name, v.judge)
	}
}
