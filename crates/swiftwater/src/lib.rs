//! Swiftwater: a QUIC transport for services that must feel instant.
