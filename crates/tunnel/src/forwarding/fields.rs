//! The fields with which client and proxy agree on forwarding: Proxy-QUIC-Forwarding and Proxy-QUIC-Port-Sharing
//! (draft-ietf-masque-quic-proxy, sections 3 and 4).

use http::{HeaderName, HeaderValue};
use sfv::{BareItem, ItemSerializer, KeyRef, Parser, StringRef};
use thiserror::Error;

use super::transform::{PacketTransform, ScrambleKey, Transform};

/// Whether packets may be forwarded, and with which transform.
pub const PROXY_QUIC_FORWARDING: HeaderName = HeaderName::from_static("proxy-quic-forwarding");

/// Whether the address to the target may be shared with other tunnels.
pub const PROXY_QUIC_PORT_SHARING: HeaderName = HeaderName::from_static("proxy-quic-port-sharing");

const ACCEPT_TRANSFORM: &str = "accept-transform";
const TRANSFORM: &str = "transform";
const SCRAMBLE_KEY: &str = "scramble-key";

/// What a client offers: transforms, the preferred one first, and the key with which it scrambles.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ForwardingOffer {
    transforms: Vec<Transform>,
    key: Option<ScrambleKey>,
}

/// What a proxy answers: a transform of the offer, and the key with which it scrambles.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ForwardingAnswer {
    transform: Transform,
    key: Option<ScrambleKey>,
}

/// The proxy chose a transform that was not offered; the request is to be aborted (section 3).
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the proxy forwards packets with a transform that was not offered")]
pub struct NotOffered;

impl ForwardingOffer {
    /// An offer of these transforms, the preferred one first, with `key` for the scramble transform.
    pub fn new(transforms: &[Transform], key: ScrambleKey) -> Self {
        let scrambles = transforms.contains(&Transform::Scramble);
        Self {
            transforms: transforms.to_vec(),
            key: scrambles.then_some(key),
        }
    }

    /// The transforms, the preferred one first.
    pub fn transforms(&self) -> &[Transform] {
        &self.transforms
    }

    /// The field; `None` without a transform.
    pub fn field(&self) -> Option<HeaderValue> {
        let names: Vec<&str> = self.transforms.iter().map(|all| all.name()).collect();
        if names.is_empty() {
            return None;
        }
        let names = names.join(",");
        field(ACCEPT_TRANSFORM, &names, self.key.as_ref())
    }

    /// What a field offers; `None` if that is nothing this crate has. Unknown transforms are passed over. The scramble
    /// transform without a key is no offer (section 6.3.2).
    pub fn parse(value: &HeaderValue) -> Option<Self> {
        let item = forwarding(value)?;
        let names = item.params.get(ACCEPT_TRANSFORM)?.as_string()?;
        let key = scramble_key(&item);
        let names = names.as_str().split(',').map(str::trim);
        let mut transforms: Vec<Transform> = Vec::new();
        for transform in names.filter_map(Transform::by_name) {
            let is_usable = transform != Transform::Scramble || key.is_some();
            if is_usable && !transforms.contains(&transform) {
                transforms.push(transform);
            }
        }
        let key = key.filter(|_| transforms.contains(&Transform::Scramble));
        (!transforms.is_empty()).then_some(Self { transforms, key })
    }

    /// The answer of a proxy that has `transforms`: the first of the offer that is among them, with `key` if that is the
    /// scramble transform; `None` if there is none.
    pub fn answer(&self, transforms: &[Transform], key: ScrambleKey) -> Option<ForwardingAnswer> {
        let mut offered = self.transforms.iter();
        let transform = *offered.find(|offered| transforms.contains(offered))?;
        let key = (transform == Transform::Scramble).then_some(key);
        Some(ForwardingAnswer { transform, key })
    }

    /// The transform of the packets that the client sends, once `answer` agrees.
    pub fn sending(&self, answer: &ForwardingAnswer) -> PacketTransform {
        with_key(answer.transform, self.key.as_ref())
    }
}

impl ForwardingAnswer {
    /// The transform.
    pub const fn transform(&self) -> Transform {
        self.transform
    }

    /// The field.
    pub fn field(&self) -> Option<HeaderValue> {
        field(TRANSFORM, self.transform.name(), self.key.as_ref())
    }

    /// What a field answers to `offer`; `None` if the proxy does not forward: it says so, or there is no key for the
    /// scramble transform.
    ///
    /// # Errors
    ///
    /// [`NotOffered`].
    pub fn parse(value: &HeaderValue, offer: &ForwardingOffer) -> Result<Option<Self>, NotOffered> {
        let Some(item) = forwarding(value) else {
            return Ok(None);
        };
        let name = item.params.get(TRANSFORM).and_then(BareItem::as_string);
        let Some(name) = name else {
            return Ok(None);
        };
        let transform = Transform::by_name(name.as_str()).ok_or(NotOffered)?;
        if !offer.transforms.contains(&transform) {
            return Err(NotOffered);
        }
        let key = scramble_key(&item);
        if transform == Transform::Scramble && key.is_none() {
            return Ok(None);
        }
        let key = key.filter(|_| transform == Transform::Scramble);
        Ok(Some(Self { transform, key }))
    }

    /// The transform of the packets that the proxy sends.
    pub fn sending(&self) -> PacketTransform {
        with_key(self.transform, self.key.as_ref())
    }
}

/// The transform, with the key of its sender. Both ends have it wherever the transform needs it.
fn with_key(transform: Transform, key: Option<&ScrambleKey>) -> PacketTransform {
    match (transform, key) {
        (Transform::Scramble, Some(key)) => PacketTransform::scramble(key),
        _ => PacketTransform::Identity,
    }
}

/// The field that says whether the address to the target may be shared, or is.
pub fn port_sharing(shares: bool) -> HeaderValue {
    HeaderValue::from_static(if shares { "?1" } else { "?0" })
}

fn field(parameter: &str, transforms: &str, key: Option<&ScrambleKey>) -> Option<HeaderValue> {
    let name = |name| KeyRef::from_str(name).ok();
    let transforms = StringRef::from_str(transforms).ok()?;
    let mut item = ItemSerializer::new()
        .bare_item(true)
        .parameter(name(parameter)?, transforms);
    if let Some(key) = key {
        item = item.parameter(name(SCRAMBLE_KEY)?, &key.as_bytes()[..]);
    }
    HeaderValue::from_str(&item.finish()).ok()
}

/// The item of a field that is true.
fn forwarding(value: &HeaderValue) -> Option<sfv::Item> {
    let item: sfv::Item = Parser::new(value.as_bytes()).parse().ok()?;
    (item.bare_item == BareItem::Boolean(true)).then_some(item)
}

fn scramble_key(item: &sfv::Item) -> Option<ScrambleKey> {
    let key = item.params.get(SCRAMBLE_KEY)?.as_byte_sequence()?;
    Some(ScrambleKey::new(key.try_into().ok()?))
}
