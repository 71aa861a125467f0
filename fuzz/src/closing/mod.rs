//! Connections that end at any time, under an HTTP/3 engine: a real QUIC connection, the peer's data on its
//! streams packet by packet (lost, late and in any order), an application that interferes, and an end by
//! either side. Every call of the engine returns, and every waiting task gets the end.
//!
//! A case is a program that is read byte by byte, an instruction from few of them: a changed byte changes one
//! thing, and seeds can be written by hand.

mod host;
pub mod program;
pub mod speaker;

use std::time::Duration;

use swiftwater_http::h3::Config;
use swiftwater_quic::wire::ResetToken;
use swiftwater_quic::{TransportConfig, crypto::EncryptionLevel};
use swiftwater_units::Side;

use crate::attack::{Attack, Setup, on_client, on_server};
use crate::peer::Packet;
use crate::persona::Persona;
use host::Host;
use program::{Fate, Op, Program};
use speaker::Speaker;

/// The stateless reset token of the peer's first connection ID, when the peer is a server.
const RESET_TOKEN: [u8; 16] = [0x5a; 16];
/// Longer than any idle timeout of either end.
const IDLE: Duration = Duration::from_secs(300);

/// One case in progress.
struct Closing {
    attack: Attack,
    host: Host,
    speaker: Speaker,
    /// Packets that are late.
    late: Vec<Vec<u8>>,
}

/// Carries out the program that `bytes` are.
pub fn run(bytes: &[u8]) {
    let mut program = Program::new(bytes);
    let Some(setup) = program.setup() else { return };
    let engine = setup.engine;
    let config = Config {
        webtransport_sessions: u64::from(setup.sessions) * 2,
        ..Config::default()
    };
    let mut closing = Closing {
        attack: attack(engine),
        host: Host::new(engine, config, bytes.len()),
        speaker: Speaker::new(engine),
        late: Vec::new(),
    };
    closing.host.turn(&mut closing.attack);
    if setup.well_begun {
        closing.speaker.begin(setup.sessions);
        closing.flush(Fate::Delivered);
    }
    while let Some(op) = program.next_op() {
        closing.play(op);
    }
    closing.end();
}

fn attack(engine: Side) -> Attack {
    let mut persona = Persona::default();
    if engine.is_client() {
        persona.parameters.stateless_reset_token = Some(ResetToken(RESET_TOKEN));
    }
    let setup = Setup {
        transport: TransportConfig::default(),
        persona,
        ..Setup::default()
    };
    match engine {
        Side::Server => on_server(setup),
        Side::Client => on_client(setup),
    }
}

impl Closing {
    fn play(&mut self, op: Op) {
        match op {
            Op::Say(piece) => {
                self.speaker.say(piece);
                if self.speaker.is_full() {
                    self.flush(Fate::Delivered);
                }
            }
            Op::Flush(fate) => self.flush(fate),
            Op::Late => {
                // The newest first: others are later still.
                if let Some(datagram) = self.late.pop() {
                    self.attack.deliver(&datagram);
                    self.host.turn(&mut self.attack);
                }
            }
            Op::Answer => {
                for datagram in self.attack.peer.answers() {
                    self.attack.deliver(&datagram);
                }
                self.host.turn(&mut self.attack);
            }
            Op::Withhold(withhold) => {
                self.host.withholds = withhold;
                self.host.turn(&mut self.attack);
            }
            Op::Wait(time) => self.wait(time),
            Op::StatelessReset => {
                let mut datagram = vec![0x42; 40];
                datagram.extend(RESET_TOKEN);
                self.attack.deliver(&datagram);
                self.host.turn(&mut self.attack);
            }
            Op::IdleTimeout => self.wait(IDLE),
            Op::Call(call) => {
                self.host.call(&mut self.attack, call);
                self.host.turn(&mut self.attack);
            }
        }
    }

    /// Sends the peer's new data.
    fn flush(&mut self, fate: Fate) {
        let payload = self.speaker.take();
        if payload.is_empty() {
            return;
        }
        let datagram = self
            .attack
            .peer
            .seal(&Packet::new(EncryptionLevel::OneRtt, &payload));
        match fate {
            Fate::Delivered => {
                self.attack.deliver(&datagram);
                self.host.turn(&mut self.attack);
            }
            Fate::Lost => {}
            Fate::Late => self.late.push(datagram),
        }
    }

    /// Lets time pass, for the engine too.
    fn wait(&mut self, time: Duration) {
        let end = self.attack.now + time;
        // The engine has few timers; each is due once.
        for _ in 0..64 {
            let due = self.host.timeout().filter(|&at| at < end);
            let until = due.unwrap_or(end);
            let step = until.saturating_since(self.attack.now);
            self.attack.wait(step);
            self.host.turn(&mut self.attack);
            if due.is_none() {
                return;
            }
        }
        panic!("the engine's timers are never done");
    }

    /// In every case the connection ends, and no task waits for it any longer.
    fn end(&mut self) {
        self.flush(Fate::Delivered);
        self.host.withholds = false;
        self.host.turn(&mut self.attack);
        let now = self.attack.now;
        self.attack.victim.connection().close(now, 0x100, b"");
        self.attack.collect();
        self.host.turn(&mut self.attack);
        // Probe timeouts, hence the closing period, may have become long in the meantime.
        self.attack.wait(Duration::from_secs(100_000));
        self.host.turn(&mut self.attack);
        assert!(self.attack.victim.connection().is_drained());
        self.host.assert_over(&mut self.attack);
    }
}
