//! Applications for simulated hosts: bulk transfers, bursts, planned transfers, live streams, requests
//! with responses, echoes. Their content is a [`Pattern`](crate::Pattern) and is checked by the
//! receiver.

mod bulk;
mod bursts;
mod echo;
mod live;
mod player;
mod request;
mod stream;
mod tcp_exchange;
mod transfers;

pub use bulk::{BulkReceiver, BulkSender, Received, RttSamples};
pub use bursts::BurstSender;
pub use echo::Echo;
pub use live::{FRAME_INTERVAL, LiveServer, LiveViewer};
pub use player::{Player, Viewing};
pub use request::{Exchange, Requester, Responder};
pub use stream::{Sink, Source};
pub use tcp_exchange::{TcpExchange, TcpExchangeServer};
pub use transfers::{Arrival, Transfer, TransferReceiver, TransferSender};
