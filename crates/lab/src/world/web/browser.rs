//! The application of the user's host: clicks, asks the selector, sends requests, and tells it what became of
//! them, as the HTTP client does (`swiftwater_http::client`).

use std::collections::BTreeMap;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use swiftwater_quic::{ConnectionHandle, Event};
use swiftwater_select::{
    Arm, Decision, Failure, Measured, NetworkId, OriginHash, Outcome, RequestDescription, Sample,
    Selector, Strategy, Transport, Window,
};
use swiftwater_sim::apps::{Protocol, WebClient};
use swiftwater_sim::tcp;
use swiftwater_sim::{Application, HostContext, TcpHandle};
use swiftwater_units::Instant;

use crate::scenario::WebSpec;
use crate::world::measures::{FeatureRow, Visit, Visited};

use super::received::{Received, smoothed_rtt};

/// Responses of a page, bytes.
const SIZES: [u64; 4] = [2_000, 10_000, 30_000, 50_000];
/// Time between the requests of a click.
const SPACING: Duration = Duration::from_millis(5);
/// When a request without a complete response is given up.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// How long QUIC is left alone after a connection could not be made.
const BROKEN: Duration = Duration::from_secs(300);

const CLICK: u64 = 0;
const SEND: u64 = 1;
const SELECTOR: u64 = 2;
/// Timers of requests: this, four times the request's number, and one of the following.
const FIRST: u64 = 4;
const HEDGE: u64 = 0;
const GIVE_UP: u64 = 1;

/// Of the arms h2 and h3.
const ONLY_TCP: u32 = 1;
const ONLY_QUIC: u32 = 2;

const NETWORK: NetworkId = NetworkId(1);

/// One sending of a request.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    protocol: Protocol,
    /// Number at the client.
    number: usize,
    begun: Instant,
    /// What had come on the connection before.
    before: Received,
    /// Packets that QUIC had received.
    packets_before: u64,
}

#[derive(Debug)]
struct Open {
    decision: Decision,
    at: Instant,
    size: u64,
    attempts: Vec<Attempt>,
}

/// The user's browser.
#[derive(Debug)]
pub(super) struct Browser {
    client: WebClient,
    selector: SelectorBox,
    random: ChaCha8Rng,
    requests: f64,
    bytes: Option<u64>,
    think: Duration,
    /// Clicks that are left.
    clicks: u64,
    /// No clicks from then on.
    end: Instant,
    /// Responses that the click still asks for.
    wanted: Vec<u64>,
    open: BTreeMap<u64, Open>,
    next: u64,
    quic_ready: Option<Instant>,
    quic_broken: Option<Instant>,
    /// TCP answered while QUIC was connecting, which it still is.
    quic_overtaken: bool,
    tcp_ready: Option<Instant>,
    /// What had come on each connection when it was ready for requests.
    when_ready: Received,
    selector_timer: Option<Instant>,
    /// The protocol of each condition, where it is not the selector's choice, and how long a condition lasts.
    planned: Option<(Vec<Transport>, Duration)>,
    /// Of a fixed protocol.
    window: Window,
    visit: Visit,
}

/// A selector without debug output.
struct SelectorBox(Selector);

impl std::fmt::Debug for SelectorBox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Selector(..)")
    }
}

fn origin() -> OriginHash {
    OriginHash(1)
}

fn protocol(transport: Transport) -> Protocol {
    match transport {
        Transport::Quic => Protocol::Quic,
        Transport::Tcp => Protocol::Tcp,
    }
}

impl Browser {
    /// A user whose clicks follow from `seed` alone. There are none from `end` on.
    pub(super) fn new(
        client: WebClient,
        selector: Selector,
        spec: &WebSpec,
        seed: u64,
        end: Instant,
    ) -> Self {
        Self {
            client,
            selector: SelectorBox(selector),
            random: ChaCha8Rng::seed_from_u64(seed ^ 0x0c11_c4ed),
            requests: spec.requests,
            bytes: spec.bytes,
            think: spec.think,
            clicks: spec.clicks.unwrap_or(u64::MAX),
            end,
            wanted: Vec::new(),
            open: BTreeMap::new(),
            next: 0,
            quic_ready: None,
            quic_broken: None,
            quic_overtaken: false,
            tcp_ready: None,
            when_ready: Received::default(),
            selector_timer: None,
            planned: None,
            window: Window::default(),
            visit: Visit::default(),
        }
    }

    /// Uses the protocol that is planned for the condition in which a request is made.
    pub(super) fn planned(self, planned: Option<(Vec<Transport>, Duration)>) -> Self {
        Self { planned, ..self }
    }

    fn planned_at(&self, now: Instant) -> Option<Transport> {
        let (planned, step) = self.planned.as_ref()?;
        let condition = (now - Instant::ZERO).as_nanos() / step.as_nanos().max(1);
        let condition = usize::try_from(condition).unwrap_or(usize::MAX);
        Some(planned.get(condition).copied().unwrap_or(Transport::Tcp))
    }

    /// True once all requests are complete or have failed, and there will be no more.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        (now >= self.end || self.clicks == 0) && self.open.is_empty() && self.wanted.is_empty()
    }

    /// What was visited.
    pub(super) fn visit(&self) -> Visit {
        Visit {
            stats: self.selector.0.stats(),
            ..self.visit.clone()
        }
    }

    fn uniform(&mut self) -> f64 {
        (f64::from(self.random.next_u32()) + 0.5) / (f64::from(u32::MAX) + 1.0)
    }

    /// A new page. All random numbers of a click are drawn at once: those of the next one don't depend on
    /// how long this one takes.
    fn click(&mut self, host: &mut HostContext<'_>) {
        if host.now() >= self.end || self.clicks == 0 {
            return;
        }
        self.clicks -= 1;
        let stop = libm::log(self.uniform());
        let more = stop / libm::log(1.0 - 1.0 / self.requests.max(1.000_001));
        let count = 1 + (more as usize).min(1_000);
        self.wanted = (0..count)
            .map(|_| {
                let drawn = SIZES[self.random.next_u32() as usize % SIZES.len()];
                self.bytes.unwrap_or(drawn)
            })
            .collect();
        self.send(host);
    }

    fn send(&mut self, host: &mut HostContext<'_>) {
        let Some(size) = self.wanted.pop() else {
            return;
        };
        let now = host.now();
        let mut request = RequestDescription::new(NETWORK, origin());
        match self.planned_at(now) {
            Some(Transport::Quic) if !self.quic_overtaken => request.available = ONLY_QUIC,
            Some(_) => request.available = ONLY_TCP,
            None if self.quic_overtaken => request.available = ONLY_TCP,
            None => {}
        }
        let decision = self.selector.0.decide(now, &request);
        let id = self.next;
        self.next += 1;
        let mut over = protocol(decision.arm.transport());
        // A fixed protocol gives way to TCP only once QUIC has failed.
        if over == Protocol::Quic && self.quic_broken.is_some_and(|until| now < until) {
            over = Protocol::Tcp;
        }
        let hedge = decision.hedge.clone();
        let open = Open {
            decision,
            at: now,
            size,
            attempts: Vec::new(),
        };
        self.open.insert(id, open);
        self.attempt(host, id, over);
        if let Some(hedge) = hedge.filter(|_| over == Protocol::Quic) {
            let after = match self.quic_ready {
                Some(_) => hedge.without_packet,
                None => hedge.without_handshake,
            };
            host.set_timer(now + after, FIRST + 4 * id + HEDGE);
        }
        host.set_timer(now + PATIENCE, FIRST + 4 * id + GIVE_UP);
        if !self.wanted.is_empty() {
            host.set_timer(now + SPACING, SEND);
        }
        self.after(host);
    }

    fn attempt(&mut self, host: &mut HostContext<'_>, id: u64, over: Protocol) {
        let before = Received::now(&self.client, host);
        let packets_before = self.packets_received(host);
        let Some(open) = self.open.get_mut(&id) else {
            return;
        };
        let number = self.client.request(host, over, (0, open.size));
        open.attempts.push(Attempt {
            protocol: over,
            number,
            begun: host.now(),
            before,
            packets_before,
        });
    }

    /// Packets that the present QUIC connection has received.
    fn packets_received(&self, host: &HostContext<'_>) -> u64 {
        let handle = self.client.quic().handle();
        let connection = handle.and_then(|handle| host.view(handle));
        connection.map_or(0, |connection| connection.stats().packets_received.get())
    }

    /// No packet came over QUIC since a request was sent over it, or there is no connection.
    fn is_silent(&self, host: &HostContext<'_>, open: &Open) -> bool {
        let mut attempts = open.attempts.iter();
        let over_quic = attempts.find(|it| it.protocol == Protocol::Quic);
        let received = self.packets_received(host);
        over_quic.is_some_and(|it| self.quic_ready.is_none() || it.packets_before == received)
    }

    /// Sends over TCP as well what QUIC has not answered.
    fn hedge(&mut self, host: &mut HostContext<'_>, id: u64) {
        let Some(open) = self.open.get(&id) else {
            return;
        };
        let [first] = open.attempts[..] else {
            return;
        };
        let has_begun = |exchange: swiftwater_sim::apps::Exchange| exchange.first_byte.is_some();
        if self.client.exchange(first.number).is_some_and(has_begun) {
            return;
        }
        if let (Some(ready), Some(hedge)) = (self.quic_ready, &open.decision.hedge) {
            // The times count from the sending.
            let sent = ready.max(first.begun);
            let is_silent = self.packets_received(host) == first.packets_before;
            let after = if is_silent {
                hedge.without_packet.min(hedge.without_response)
            } else {
                hedge.without_response
            };
            let due = sent + after;
            if due > host.now() {
                host.set_timer(due, FIRST + 4 * id + HEDGE);
                return;
            }
        }
        self.attempt(host, id, Protocol::Tcp);
    }

    /// Looks for requests that are complete or have failed.
    fn collect(&mut self, host: &mut HostContext<'_>) {
        let ids: Vec<u64> = self.open.keys().copied().collect();
        for id in ids {
            self.examine(host, id);
        }
        self.after(host);
    }

    fn examine(&mut self, host: &mut HostContext<'_>, id: u64) {
        let Some(open) = self.open.get(&id) else {
            return;
        };
        let exchange = |attempt: &Attempt| self.client.exchange(attempt.number);
        // The response that begins first is used, as in the HTTP client.
        let begun = open.attempts.iter().filter_map(|attempt| {
            let exchange = exchange(attempt).filter(|it| it.failed.is_none())?;
            Some((exchange.first_byte?, exchange.finish.is_some(), *attempt))
        });
        if let Some((_, is_complete, attempt)) = begun.min_by_key(|(first_byte, ..)| *first_byte) {
            if is_complete {
                self.complete(host, id, attempt);
            }
            return;
        }
        let is_lost = |attempt: &Attempt| exchange(attempt).is_none_or(|it| it.failed.is_some());
        if !open.attempts.iter().all(is_lost) {
            return;
        }
        let tcp = open.attempts.iter().any(|it| it.protocol == Protocol::Tcp);
        if tcp {
            self.finish(host, id, Err(Failure::Lost));
        } else {
            self.attempt(host, id, Protocol::Tcp);
        }
    }

    fn complete(&mut self, host: &mut HostContext<'_>, id: u64, attempt: Attempt) {
        let Some(exchange) = self.client.exchange(attempt.number) else {
            return;
        };
        let size = self.open.get(&id).map_or(0, |open| open.size);
        let ready = match attempt.protocol {
            Protocol::Quic => self.quic_ready,
            Protocol::Tcp => self.client.tcp().ready(),
        };
        let sent = ready.map_or(attempt.begun, |ready| ready.max(attempt.begun));
        let finish = exchange.finish.unwrap_or(host.now());
        let before = if sent > attempt.begun {
            self.when_ready
        } else {
            attempt.before
        };
        let received = Received::now(&self.client, host);
        let measured = Measured {
            first_byte: exchange.first_byte.unwrap_or(finish).saturating_since(sent),
            completion: finish.saturating_since(sent),
            waited: sent.saturating_since(attempt.begun),
            bytes: size,
            rtt: smoothed_rtt(&self.client, host, attempt.protocol),
            traffic: Some(received.traffic_since(&before, attempt.protocol)),
        };
        self.finish(host, id, Ok((attempt.protocol, measured)));
    }

    /// The end of a request.
    fn finish(
        &mut self,
        host: &mut HostContext<'_>,
        id: u64,
        result: Result<(Protocol, Measured), Failure>,
    ) {
        let Some(open) = self.open.remove(&id) else {
            return;
        };
        let now = host.now();
        let decided = open.decision.arm.clone();
        let arm = match &result {
            Ok((over, _)) if *over != protocol(decided.transport()) => match over {
                Protocol::Quic => Arm::h3(),
                Protocol::Tcp => Arm::h2(),
            },
            _ => decided,
        };
        let is_fixed = matches!(self.selector.0.config().strategy, Strategy::Fixed(_));
        let tried_quic = open.attempts.iter().any(|it| it.protocol == Protocol::Quic);
        let by_tcp = matches!(&result, Ok((Protocol::Tcp, _)));
        self.quic_overtaken |= by_tcp && tried_quic && self.quic_ready.is_none() && !is_fixed;
        self.visit.requests.push(Visited {
            at: open.at,
            duration: now.saturating_since(open.at),
            failed: result.is_err(),
            transport: arm.transport(),
            is_probe: open.decision.reason.is_probe(),
            hedged: open.attempts.len() > 1,
        });
        let result = result.map(|(_, measured)| measured);
        if let (true, Ok(measured)) = (is_fixed, &result) {
            self.note_features(now, measured);
        }
        let outcome = Outcome {
            silent: self.is_silent(host, &open),
            hedged: open.attempts.len() > 1,
            arm,
            result,
        };
        self.selector.0.on_outcome(now, open.decision.id, &outcome);
        if self.open.is_empty() && self.wanted.is_empty() {
            let think = self.think.mul_f64(-libm::log(self.uniform()));
            host.set_timer(now + think, CLICK);
        }
    }

    fn note_features(&mut self, now: Instant, measured: &Measured) {
        let parameters = &self.selector.0.config().parameters;
        self.window.push(Sample::new(now, measured), parameters);
        if self.window.len() < parameters.min_requests as usize {
            return;
        }
        if let Some(features) = self.window.features() {
            let bandwidth = self.window.bandwidth();
            self.visit.rows.push(FeatureRow {
                at: now - Instant::ZERO,
                features,
                bandwidth_mbps: bandwidth.map_or(f32::NAN, |rate| rate * 8.0 / 1e3),
            });
        }
    }

    /// Takes events of the selector, and sets its timer.
    fn after(&mut self, host: &mut HostContext<'_>) {
        let selector = &mut self.selector.0;
        while let Some(event) = selector.poll_event() {
            self.visit.events.push((host.now(), event.kind));
        }
        let next = selector.next_timeout();
        if next != self.selector_timer {
            self.selector_timer = next;
            if let Some(at) = next {
                host.set_timer(at, SELECTOR);
            }
        }
    }

    fn give_up(&mut self, host: &mut HostContext<'_>, id: u64) {
        if self.open.contains_key(&id) {
            self.finish(host, id, Err(Failure::TooSlow));
        }
    }
}

impl Application for Browser {
    fn on_start(&mut self, host: &mut HostContext<'_>) {
        host.set_timer(host.now(), CLICK);
    }

    fn on_event(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, event: Event) {
        let is_present = self.client.quic().handle() == Some(handle);
        let connected = is_present && matches!(event, Event::Connected);
        self.client.on_event(host, handle, event);
        if connected {
            self.quic_ready = Some(host.now());
            self.when_ready.quic = Received::now(&self.client, host).quic;
            let selector = &mut self.selector.0;
            selector.on_connection(host.now(), NETWORK, origin(), &Arm::h3());
        }
        let is_lost = is_present && self.client.quic().handle().is_none();
        if is_lost && self.quic_ready.is_none() {
            self.quic_broken = Some(host.now() + BROKEN);
            let selector = &mut self.selector.0;
            selector.on_quic_blocked(host.now(), NETWORK, origin());
        }
        if connected || is_lost {
            self.quic_overtaken = false;
        }
        self.collect(host);
        if is_lost {
            self.quic_ready = None;
        }
    }

    fn on_tcp(&mut self, host: &mut HostContext<'_>, handle: TcpHandle, event: tcp::Event) {
        self.client.on_tcp(host, handle, event);
        if self.client.tcp().ready() != self.tcp_ready {
            self.tcp_ready = self.client.tcp().ready();
            self.when_ready.tcp = Received::now(&self.client, host).tcp;
            let selector = &mut self.selector.0;
            selector.on_connection(host.now(), NETWORK, origin(), &Arm::h2());
        }
        self.collect(host);
    }

    fn on_timer(&mut self, host: &mut HostContext<'_>, token: u64) {
        match token {
            CLICK => self.click(host),
            SEND => self.send(host),
            SELECTOR => self.selector.0.on_timeout(host.now()),
            request => {
                let id = (request - FIRST) / 4;
                match (request - FIRST) % 4 {
                    HEDGE => self.hedge(host, id),
                    _ => self.give_up(host, id),
                }
            }
        }
        self.after(host);
    }
}
