//! What the ends of a tunnel read for forwarded mode: fields, capsules, and packets that are observed and rewritten. What
//! is accepted has a form that is accepted again and means the same; transforms are undone by their inverse; the number of
//! registrations is bounded whatever comes.
#![no_main]

use bytes::Bytes;
use http::HeaderValue;
use libfuzzer_sys::fuzz_target;
use swiftwater_http::h3::capsule::CapsuleReader;
use swiftwater_tunnel::forwarding::{
    CidCapsule, ClientIds, ForwardingAnswer, ForwardingOffer, PacketTransform, ProxyIds,
    ScrambleKey, Transform,
};
use swiftwater_wire::ConnectionId;

/// Registrations of a client at once.
const MAX_ACTIVE: usize = 8;

fn check_fields(bytes: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(bytes) else {
        return;
    };
    let ours = ForwardingOffer::new(&Transform::ALL, ScrambleKey::new([1; 32]));
    if let Ok(Some(answer)) = ForwardingAnswer::parse(&value, &ours) {
        let field = answer.field().expect("an answer has a field");
        assert_eq!(ForwardingAnswer::parse(&field, &ours), Ok(Some(answer)));
    }
    if let Some(offer) = ForwardingOffer::parse(&value) {
        let field = offer.field().expect("an offer has a field");
        assert_eq!(ForwardingOffer::parse(&field), Some(offer));
    }
}

fn check_transform(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else {
        return;
    };
    let cid_len = usize::from(first) % 21;
    let mut packet = rest.to_vec();
    if let Some(first) = packet.first_mut() {
        *first &= 0x7f;
    }
    let before = packet.clone();
    let transform = PacketTransform::scramble(&ScrambleKey::new([first; 32]));
    if transform.encode(&mut packet, cid_len) {
        assert!(transform.takes(before.len(), cid_len));
        assert!(transform.decode(&mut packet, cid_len));
    }
    assert_eq!(packet, before);
}

fn check_ids(bytes: &[u8]) {
    let mut client = ClientIds::<()>::default();
    let mut proxy = ProxyIds::<()>::new(MAX_ACTIVE as u64);
    let mut out = Vec::new();
    let vcid = ConnectionId::new(b"a-virtual-id").expect("it is short");
    let mut reader = CapsuleReader::new(1000);
    let mut rest = Bytes::copy_from_slice(bytes);
    while let Some(capsule) = reader.next(&mut rest) {
        client.observe_sent(&capsule.value, &mut out);
        client.observe_received(&capsule.value, &mut out);
        let _ = client.to_target(&capsule.value);
        let _ = proxy.to_client(&capsule.value);
        let Ok(Some(read)) = CidCapsule::decode(&capsule) else {
            continue;
        };
        assert_eq!(CidCapsule::decode(&read.encode()), Ok(Some(read.clone())));
        match &read {
            CidCapsule::RegisterClientCid(cid) => drop(proxy.register_client(cid, vcid)),
            CidCapsule::RegisterTargetCid { cid, .. } => {
                drop(proxy.register_target(cid, |_| Some((vcid, ()))));
            }
            CidCapsule::AckClientVcid { cid, vcid, .. } => proxy.acknowledge(cid, vcid),
            CidCapsule::CloseClientCid(cid) => proxy.close_client(cid),
            CidCapsule::CloseTargetCid(cid) => proxy.close_target(cid),
            _ => {}
        }
        let _ = client.on_capsule(read, |_, _| Some(()), &mut out);
        let _ = proxy.take_permission();
        out.clear();
    }
    assert!(proxy.close_all().len() <= MAX_ACTIVE);
}

fuzz_target!(|bytes: &[u8]| {
    check_fields(bytes);
    check_transform(bytes);
    check_ids(bytes);
});
