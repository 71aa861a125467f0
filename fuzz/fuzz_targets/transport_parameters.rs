//! Transport parameters of any bytes: what is accepted is in range, and survives a round trip.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use swiftwater_fuzz::inputs::side;
use swiftwater_wire::TransportParameters;

fuzz_target!(|input: (u8, &[u8])| {
    let sender = side(input.0);
    let Ok(parameters) = TransportParameters::decode(input.1, sender) else {
        return;
    };
    assert!(parameters.max_udp_payload_size >= 1200);
    assert!(parameters.ack_delay_exponent <= 20);
    assert!(parameters.max_ack_delay < Duration::from_millis(1 << 14));
    assert!(parameters.active_connection_id_limit >= 2);
    assert!(parameters.initial_max_streams_bidi <= 1 << 60);
    assert!(parameters.initial_max_streams_uni <= 1 << 60);
    if let Some(versions) = &parameters.version_information {
        assert!(versions.chosen != 0 && !versions.available().contains(&0));
        // RFC 9368, section 4: clients can always do what they chose.
        let knows = versions.available().contains(&versions.chosen);
        assert!(sender.is_server() || knows || versions.available().len() == 16);
    }
    if let Some(min) = parameters.min_ack_delay {
        assert!(min <= parameters.max_ack_delay);
    }
    if sender.is_client() {
        assert!(parameters.stateless_reset_token.is_none());
        assert!(parameters.preferred_address.is_none());
        assert!(parameters.original_destination_connection_id.is_none());
        assert!(parameters.retry_source_connection_id.is_none());
    }
    let mut encoded = Vec::new();
    parameters.encode(sender, &mut encoded, Some((31 * 5 + 27, b"grease")));
    let again = TransportParameters::decode(&encoded, sender);
    assert_eq!(again.as_ref(), Ok(&parameters));
});
