package gosdk

// Kept tells how many scopes and stateless-era prototypes the process keeps.
func Kept() (scopeCount, prototypeCount int) {
	scopes.Range(func(any, any) bool {
		scopeCount++
		return true
	})
	prototypes.mu.Lock()
	defer prototypes.mu.Unlock()
	return scopeCount, len(prototypes.stateless)
}
