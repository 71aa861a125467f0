//! rustls behind the crypto traits of swiftwater-quic, and a null cipher for simulation.
