package main

import (
	"crypto/tls"
	"fmt"
	_ "unsafe" // for go:linkname
)

// The suites of TLS 1.3 that crypto/tls offers and accepts, in its order, on machines with and without
// instructions for AES. tls.Config has no say in them; these names are open to packages that need one.

//go:linkname defaultSuites crypto/tls.defaultCipherSuitesTLS13
var defaultSuites []uint16

//go:linkname defaultSuitesNoAES crypto/tls.defaultCipherSuitesTLS13NoAES
var defaultSuitesNoAES []uint16

var suites = map[string]uint16{
	"aes128":   tls.TLS_AES_128_GCM_SHA256,
	"aes256":   tls.TLS_AES_256_GCM_SHA384,
	"chacha20": tls.TLS_CHACHA20_POLY1305_SHA256,
}

// chooseSuite holds this program's connections to one suite, unless the name is "any".
func chooseSuite(name string) error {
	if name == "any" {
		return nil
	}
	suite, found := suites[name]
	if !found {
		return fmt.Errorf("no suite %q", name)
	}
	defaultSuites = []uint16{suite}
	defaultSuitesNoAES = []uint16{suite}
	return nil
}

// checkSuite tells whether a handshake has used the suite that it should.
func checkSuite(name string, state tls.ConnectionState) error {
	if wanted, found := suites[name]; found && state.CipherSuite != wanted {
		return fmt.Errorf("the suite is %s", tls.CipherSuiteName(state.CipherSuite))
	}
	return nil
}
