package main

import _ "unsafe" // for go:linkname

// packetsPerKey is the number of packets sent or received after which a side that was told to update
// its keys does so.
const packetsPerKey = 100

// setKeyUpdateInterval is quic-go's own knob for tests, which no public API reaches. Without it the
// first update comes after 100 packets and the next ones after 100,000.
//
//go:linkname setKeyUpdateInterval github.com/quic-go/quic-go/internal/handshake.SetKeyUpdateInterval
func setKeyUpdateInterval(packets uint64) (reset func())
