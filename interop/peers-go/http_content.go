package main

import (
	"fmt"
	"hash/crc32"
	"net/http"
	"strconv"
	"strings"
)

// What the HTTP cases send; interop/README.md has the contract.
const (
	parallelRequests = 1000
	turns            = 20
	turnSize         = 50_000
	headerTurns      = 3
	largeSize        = 20_000
	smallCount       = 50
	cancelAfter      = 100_000
	mostContent      = 16 << 20
	trailerValue     = "after all"
	smallPrefix      = "X-Small-"
)

var gets = []string{"/bytes/0", "/bytes/1", "/bytes/100000", "/bytes/1000000", "/nothing"}

// pattern is content that depends on its place.
func pattern(size int) []byte {
	content := make([]byte, size)
	for at := range content {
		content[at] = byte(at ^ at>>8 ^ at>>16)
	}
	return content
}

// askedSize is what /bytes/N asks for.
func askedSize(path string) (int, bool) {
	text, found := strings.CutPrefix(path, "/bytes/")
	size, err := strconv.Atoi(text)
	return size, found && err == nil && size >= 0 && size <= mostContent
}

func letters(size int) string {
	text := make([]byte, size)
	for at := range text {
		text[at] = byte('a' + at%26)
	}
	return string(text)
}

// addSmall adds short headers whose values depend on the turn.
func addSmall(headers http.Header, count, turn int) {
	for nth := range count {
		headers.Set(fmt.Sprintf("%s%d", smallPrefix, nth), fmt.Sprintf("value %d of turn %d", nth, turn))
	}
}

func countSmall(headers http.Header) int {
	count := 0
	for name := range headers {
		if strings.HasPrefix(name, smallPrefix) {
			count++
		}
	}
	return count
}

func checksum(data []byte) uint32 { return crc32.ChecksumIEEE(data) }
