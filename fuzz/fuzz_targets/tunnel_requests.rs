//! What a proxy for UDP reads from clients, and a client from proxies: targets in paths and authorities, templates,
//! offers of repair, datagrams. What is accepted has a form that is accepted again and means the same.
#![no_main]

use bytes::Bytes;
use http::HeaderValue;
use libfuzzer_sys::fuzz_target;
use swiftwater_tunnel::context;
use swiftwater_tunnel::target::{Target, Template};
use swiftwater_tunnel::tecc::{Agreement, data};

fn check(target: &Target) {
    assert_eq!(target.to_string().parse().as_ref(), Ok(target));
    let template = Template::new("proxy.example").expect("the default template");
    let uri = template.expand(target).expect("every target fits");
    assert_eq!(Target::from_path(uri.path()).as_ref(), Ok(target));
}

fuzz_target!(|bytes: &[u8]| {
    if let Some((context, payload)) = context::decode(Bytes::copy_from_slice(bytes)) {
        let again = Bytes::from(context::encode(context, &payload));
        assert_eq!(context::decode(again), Some((context, payload.clone())));
        if let Some((number, payload)) = data::decode(payload) {
            let again = Bytes::from(data::encode(context, number, &payload));
            let decoded = data::decode(again.slice(context.size()..));
            assert_eq!(decoded, Some((number, payload)));
        }
    }
    if let Ok(value) = HeaderValue::from_bytes(bytes)
        && let Some(agreement) = Agreement::parse(&value)
    {
        let field = agreement.field().expect("what was parsed can be written");
        assert_eq!(Agreement::parse(&field), Some(agreement));
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    for target in [text.parse(), Target::from_path(text)]
        .into_iter()
        .flatten()
    {
        check(&target);
    }
    if let Ok(template) = Template::new(text) {
        template.proxy().expect("an accepted template has a proxy");
    }
});
