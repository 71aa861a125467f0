//! Applications for simulated hosts: bulk transfers, bursts, planned transfers, live streams, requests
//! with responses over QUIC or TCP, echoes. Their content is a [`Pattern`](crate::Pattern) and is checked by the
//! receiver.

mod bulk;
mod bursts;
mod echo;
mod https;
mod live;
mod player;
mod request;
mod stream;
mod tcp_exchange;
mod transfers;
mod tunnel;
mod web;

pub use bulk::{BulkReceiver, BulkSender, Received, RttSamples};
pub use bursts::BurstSender;
pub use echo::Echo;
pub use https::{HttpsClient, HttpsConfig, HttpsServer, MAX_RECORD, TlsSizes};
pub use live::{FRAME_INTERVAL, LiveServer, LiveViewer};
pub use player::{Player, Viewing};
pub use request::{Exchange, Requester, Responder};
pub use stream::{Sink, Source};
pub use tcp_exchange::{TcpExchange, TcpExchangeServer};
pub use transfers::{Arrival, Transfer, TransferReceiver, TransferSender};
pub use tunnel::{Carriage, TunnelClient, TunnelConfig, TunnelProxy, TunnelStats};
pub use web::{Protocol, WebClient, WebRequest, WebServer};
