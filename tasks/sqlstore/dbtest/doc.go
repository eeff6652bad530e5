// Package dbtest runs the store of package sqlstore on real databases. It is a module of its
// own, so that their drivers are no dependencies of the library.
//
// SQLite runs in the process. A postgres:// URL in HEED_TEST_POSTGRES makes every test
// run on that database as well.
package dbtest
