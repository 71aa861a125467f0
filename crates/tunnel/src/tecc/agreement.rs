//! How the ends of a tunnel agree on TECC: a field of the request, repeated in the response.

use http::{HeaderName, HeaderValue};
use sfv::{BareItem, ItemSerializer, KeyRef, Parser};
use swiftwater_wire::VarInt;

use crate::context::ContextId;

/// The name of the field, a boolean item with parameters (RFC 9651): `?1;v=1;d=2`, or `?1;v=1;d=2;r=4` with reports.
pub const TECC: HeaderName = HeaderName::from_static("tecc");

/// The version of what the contexts carry.
const VERSION: i64 = 1;

/// What the ends of a tunnel agree on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Agreement {
    /// The context of numbered payloads; even and not 0, as the client allocates it (RFC 9298, section 4).
    data: ContextId,
    /// The context of reports, allocated in the same way; `None` without reports.
    reports: Option<ContextId>,
}

impl Agreement {
    /// What a client offers: context 2.
    pub const OFFER: Self = Self {
        data: ContextId::new(VarInt::from_u32(2)),
        reports: None,
    };

    /// What a client offers that takes reports too: contexts 2 and 4.
    pub const OFFER_WITH_REPORTS: Self = Self {
        reports: Some(ContextId::new(VarInt::from_u32(4))),
        ..Self::OFFER
    };

    /// The context of numbered payloads.
    pub const fn data(self) -> ContextId {
        self.data
    }

    /// The context of reports; `None` without reports.
    pub const fn reports(self) -> Option<ContextId> {
        self.reports
    }

    /// Whether a proxy may answer so to `offer`: all of it, or without reports.
    pub fn answers(self, offer: Self) -> bool {
        self.data == offer.data && (self.reports.is_none() || self.reports == offer.reports)
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
        let data = context(number("d")?)?;
        let reports = match item.params.get("r") {
            Some(_) => Some(context(number("r")?)?),
            None => None,
        };
        (reports != Some(data)).then_some(Self { data, reports })
    }

    /// The field.
    pub fn field(self) -> Option<HeaderValue> {
        let whole = |number: u64| sfv::Integer::try_from(i64::try_from(number).ok()?).ok();
        let key = |name| KeyRef::from_str(name).ok();
        let mut item = ItemSerializer::new()
            .bare_item(true)
            .parameter(key("v")?, sfv::Integer::try_from(VERSION).ok()?)
            .parameter(key("d")?, whole(self.data.get())?);
        if let Some(reports) = self.reports {
            item = item.parameter(key("r")?, whole(reports.get())?);
        }
        HeaderValue::from_str(&item.finish()).ok()
    }
}

/// A context that a client may allocate: even, and not that of UDP payloads.
fn context(number: i64) -> Option<ContextId> {
    let number = u64::try_from(number).ok()?;
    let is_of_client = number != 0 && number.is_multiple_of(2);
    let context = ContextId::new(VarInt::new(number).ok()?);
    is_of_client.then_some(context)
}
