//! How the ends of a tunnel agree on TECC: a field of the request, repeated in the response.

use http::{HeaderName, HeaderValue};
use sfv::{BareItem, ItemSerializer, KeyRef, Parser};
use swiftwater_wire::VarInt;

use crate::context::ContextId;

/// The name of the field, a boolean item with parameters (RFC 9651): `?1;v=1;d=2`.
pub const TECC: HeaderName = HeaderName::from_static("tecc");

/// The version of what the contexts carry.
const VERSION: i64 = 1;

/// What the ends of a tunnel agree on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Agreement {
    /// The context of numbered payloads; even and not 0, as the client allocates it (RFC 9298, section 4).
    data: ContextId,
}

impl Agreement {
    /// What a client offers: context 2.
    pub const OFFER: Self = Self {
        data: ContextId::new(VarInt::from_u32(2)),
    };

    /// The context of numbered payloads.
    pub const fn data(self) -> ContextId {
        self.data
    }

    /// What a field says; `None` if it is no offer of this version.
    pub fn parse(value: &HeaderValue) -> Option<Self> {
        let item: sfv::Item = Parser::new(value.as_bytes()).parse().ok()?;
        if item.bare_item != BareItem::Boolean(true) {
            return None;
        }
        let number = |name: &str| {
            let value = item.params.get(name)?;
            Some(i64::from(value.as_integer()?))
        };
        if number("v")? != VERSION {
            return None;
        }
        let data = u64::try_from(number("d")?).ok()?;
        let is_of_client = data != 0 && data.is_multiple_of(2);
        let data = ContextId::new(VarInt::new(data).ok()?);
        is_of_client.then_some(Self { data })
    }

    /// The field.
    pub fn field(self) -> Option<HeaderValue> {
        let data = i64::try_from(self.data.get()).ok()?;
        let text = ItemSerializer::new()
            .bare_item(true)
            .parameter(
                KeyRef::from_str("v").ok()?,
                sfv::Integer::try_from(VERSION).ok()?,
            )
            .parameter(
                KeyRef::from_str("d").ok()?,
                sfv::Integer::try_from(data).ok()?,
            )
            .finish();
        HeaderValue::from_str(&text).ok()
    }
}
