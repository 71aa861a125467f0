//! One endless stream over the perfect wire.

use std::sync::Arc;
use std::time::Duration;

use swiftwater_policies::schedulers::MinRttConfig;
use swiftwater_policies::xlink::XlinkConfig;
use swiftwater_policies::{PlayerFeedbackConfig, Policies};
use swiftwater_quic::policy::{
    ChunkExpectation, DefaultPolicies, PlayerSignal, PolicyFactory, ResponseStart,
};
use swiftwater_quic::{MultipathConfig, ReadOutcome, RetryPolicy, TransportConfig};
use swiftwater_units::{Bandwidth, ByteCount, Dir, StreamId};

use crate::support::{Wire, establish};

/// Bytes moved at a time.
pub(crate) const MEGABYTE: usize = 1 << 20;

/// A connection with one stream that never ends.
pub(crate) struct Bulk {
    /// Both ends.
    pub(crate) wire: Wire,
    id: StreamId,
    data: Vec<u8>,
    sink: Vec<u8>,
    /// Each megabyte is announced as a response, and the receiver plays it.
    is_video: bool,
    /// Responses announced so far.
    responses: u64,
}

fn configuration(policies: Arc<dyn PolicyFactory>) -> TransportConfig {
    TransportConfig {
        initial_max_datagram_size: 1452,
        pacing: false,
        policies,
        ..TransportConfig::default()
    }
}

/// Policies for video over several paths, for both ends, by name.
#[allow(dead_code, reason = "not in every benchmark")]
pub(crate) fn of_video(name: &str) -> Option<Policies> {
    let policies = match name {
        "xlink" => Policies::xlink(),
        "xlink-paper" => Policies::xlink().with_reinjector(Arc::new(XlinkConfig::paper())),
        "chorus" => Policies::chorus(),
        "chorus+" => Policies::chorus_plus(),
        _ => return None,
    };
    // The receiver's; the sender has nothing to report with it.
    Some(policies.with_feedback(Arc::new(PlayerFeedbackConfig::default())))
}

impl Bulk {
    pub(crate) fn new(real_tls: bool) -> Self {
        Self::with_policies(real_tls, Arc::new(DefaultPolicies))
    }

    /// The same with other policies on both ends.
    pub(crate) fn with_policies(real_tls: bool, policies: Arc<dyn PolicyFactory>) -> Self {
        Self::with_config(real_tls, 1, configuration(policies))
    }

    /// The same over `paths` paths, which all have the same addresses; `min-rtt` chooses among them.
    pub(crate) fn with_paths(real_tls: bool, paths: usize) -> Self {
        let policies = Policies::default().with_scheduler(Arc::new(MinRttConfig::default()));
        Self::with_policies_and_paths(real_tls, paths, policies)
    }

    /// The same with other policies on both ends.
    pub(crate) fn with_policies_and_paths(
        real_tls: bool,
        paths: usize,
        policies: Policies,
    ) -> Self {
        let config = TransportConfig {
            multipath: Some(MultipathConfig::default()),
            max_feedback_size: 64,
            ..configuration(Arc::new(policies))
        };
        Self::with_config(real_tls, paths, config)
    }

    /// Announces each megabyte as a response, which a player with ten seconds in its buffer expects in a minute.
    pub(crate) fn with_responses(mut self) -> Self {
        self.is_video = true;
        self
    }

    fn announce(&mut self) {
        self.responses += 1;
        let now = self.wire.now;
        let response = ResponseStart {
            stream: self.id,
            bytes: ByteCount::new(MEGABYTE as u64),
            requested_at: now,
        };
        let sender = self.wire.client.connection();
        sender.update_hints(now, |hints| hints.response = Some(response));
        let bitrate = Bandwidth::from_mbps(2);
        let player = PlayerSignal::buffering(Duration::from_secs(10), bitrate, 24.0);
        let receiver = self.wire.server.connection();
        receiver.update_hints(now, |hints| {
            hints.player = Some(player);
            hints.expectation = Some(ChunkExpectation {
                chunk: self.responses,
                expected_time: Duration::from_secs(60),
            });
        });
    }

    fn with_config(real_tls: bool, paths: usize, config: TransportConfig) -> Self {
        let mut wire = Wire::with(real_tls, RetryPolicy::Never, config);
        establish(&mut wire);
        while wire.client.connection().open_paths().count() < paths {
            let now = wire.now;
            let client = wire.client.connection();
            let address = client.path_address();
            // Until connection IDs have arrived there is none to open.
            let _ = client.open_path(now, address);
            wire.step(Duration::from_secs(1));
        }
        let id = wire.client.connection().open(Dir::Bi).unwrap();
        wire.client
            .connection()
            .send_stream(id)
            .write(b"x")
            .unwrap();
        while wire.server.connection().accept(Dir::Bi).is_none() {
            wire.step(Duration::from_secs(1));
        }
        let mut bulk = Self {
            wire,
            id,
            data: vec![7; 1 << 16],
            sink: vec![0; 1 << 16],
            is_video: false,
            responses: 0,
        };
        // Past slow start, window growth and every buffer's growth.
        for _ in 0..64 {
            bulk.megabyte();
        }
        bulk
    }

    /// Writes and reads a megabyte.
    pub(crate) fn megabyte(&mut self) {
        if self.is_video {
            self.announce();
        }
        let (mut written, mut read) = (0, 0);
        while read < MEGABYTE {
            while written < MEGABYTE {
                let want = self.data.len().min(MEGABYTE - written);
                let stream = &mut self.wire.client.connection().send_stream(self.id);
                match stream.write(&self.data[..want]).unwrap() {
                    0 => break,
                    n => written += n,
                }
            }
            self.wire.step(Duration::from_millis(100));
            loop {
                let stream = &mut self.wire.server.connection().recv_stream(self.id);
                match stream.read(&mut self.sink).unwrap() {
                    ReadOutcome::Data(n) => read += n,
                    _ => break,
                }
            }
        }
    }
}
