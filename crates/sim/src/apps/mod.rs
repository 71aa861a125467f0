//! Applications for simulated hosts: bulk transfers, requests with responses, echoes. Their content
//! is a [`Pattern`](crate::Pattern) and is checked where it arrives.

mod bulk;
mod echo;
mod request;
mod stream;

pub use bulk::{BulkReceiver, BulkSender, Received, RttSamples};
pub use echo::Echo;
pub use request::{Exchange, Requester, Responder};
pub use stream::{Sink, Source};
