//! Two TLS sessions, and an attacker between them.

use std::sync::{Arc, OnceLock};

use arbitrary::Arbitrary;
use swiftwater_quic::crypto::{ClientCrypto, EncryptionLevel, ServerCrypto, Session};
use swiftwater_quic::wire::VERSION_1;
use swiftwater_tls::null::{NullClient, NullServer};
use swiftwater_tls::{ClientTls, DevCertificate, ServerTls};
use swiftwater_units::Side;

const MAX_STEPS: usize = 40;

/// What happens to the messages.
#[derive(Arbitrary, Debug)]
pub struct Handshake {
    real_tls: bool,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// What a side has to say arrives: the next so many bytes.
    Genuine { from_server: bool, len: u16 },
    /// The same with some bytes changed (position, exclusive or).
    Damaged {
        from_server: bool,
        changes: Vec<(u16, u8)>,
    },
    /// Any bytes, in any encryption level.
    MadeUp {
        to_server: bool,
        level: u8,
        bytes: Vec<u8>,
    },
    /// A whole message of a type with any body.
    Message {
        to_server: bool,
        level: u8,
        kind: u8,
        body: Vec<u8>,
    },
}

struct Crypto {
    client: Arc<dyn ClientCrypto>,
    server: Arc<dyn ServerCrypto>,
}

fn crypto(real_tls: bool) -> &'static Crypto {
    static EACH: [OnceLock<Crypto>; 2] = [OnceLock::new(), OnceLock::new()];
    EACH[usize::from(real_tls)].get_or_init(|| {
        if !real_tls {
            return Crypto {
                client: Arc::new(NullClient::new(["fuzz"])),
                server: Arc::new(NullServer::new(["fuzz"]).with_ticket(true)),
            };
        }
        let certificate = DevCertificate::deterministic(["localhost"]).expect("a certificate");
        let client = ClientTls::with_roots([certificate.certificate_der()]).expect("a root");
        let server = ServerTls::from_dev_certificate(&certificate).expect("a server");
        Crypto {
            client: Arc::new(client.alpn(["fuzz"])),
            server: Arc::new(server.alpn(["fuzz"])),
        }
    })
}

/// One end, and its undelivered messages.
struct End {
    session: Box<dyn Session>,
    says: Vec<(EncryptionLevel, Vec<u8>)>,
    level: EncryptionLevel,
    failed: bool,
}

impl End {
    fn new(session: Box<dyn Session>) -> Self {
        let mut end = Self {
            session,
            says: Vec::new(),
            level: EncryptionLevel::Initial,
            failed: false,
        };
        end.listen();
        end
    }

    /// Collects its messages.
    fn listen(&mut self) {
        loop {
            let mut bytes = Vec::new();
            let keys = self.session.write_handshake(&mut bytes);
            if !bytes.is_empty() {
                self.says.push((self.level, bytes));
            } else if keys.is_none() {
                return;
            }
            if let Some(keys) = keys {
                assert!(keys.level > self.level, "{:?} twice", keys.level);
                self.level = keys.level;
            }
        }
    }

    fn hear(&mut self, level: EncryptionLevel, bytes: &[u8]) {
        if self.failed {
            return;
        }
        self.failed = self.session.read_handshake(level, bytes).is_err();
        self.listen();
    }

    /// The next bytes that it says.
    fn next(&mut self, len: usize) -> Option<(EncryptionLevel, Vec<u8>)> {
        let (level, bytes) = self.says.first_mut()?;
        let level = *level;
        let taken: Vec<u8> = bytes.drain(..len.clamp(1, bytes.len())).collect();
        if bytes.is_empty() {
            self.says.remove(0);
        }
        Some((level, taken))
    }
}

fn level(byte: u8) -> EncryptionLevel {
    [
        EncryptionLevel::Initial,
        EncryptionLevel::Handshake,
        EncryptionLevel::OneRtt,
    ][usize::from(byte % 3)]
}

impl Handshake {
    /// Plays it.
    pub fn run(self) {
        let crypto = crypto(self.real_tls);
        let client = crypto
            .client
            .start_session(VERSION_1, "localhost", b"client");
        let server = crypto.server.start_session(VERSION_1, b"server");
        let mut ends = [client, server].map(|session| End::new(session.expect("good settings")));
        for step in self.steps.into_iter().take(MAX_STEPS) {
            step.play(&mut ends, &*crypto.server);
        }
        let done = |end: &End| !end.failed && !end.session.is_handshaking();
        if ends.iter().all(done) {
            let secrets = ends.each_ref().map(|end| {
                let mut out = [0; 32];
                let exported = end.session.export_keying_material(&mut out, b"fuzz", b"");
                exported.expect("the handshake is complete");
                out
            });
            assert_eq!(secrets[0], secrets[1]);
            let [client, server] = &ends;
            assert_eq!(client.session.alpn(), server.session.alpn());
            assert_eq!(
                client.session.peer_transport_parameters(),
                Some(&b"server"[..])
            );
            assert_eq!(
                server.session.peer_transport_parameters(),
                Some(&b"client"[..])
            );
        }
        for mut end in ends {
            let _ = (end.session.server_name(), end.session.peer_certificates());
            let _ = end.session.next_packet_keys();
        }
    }
}

impl Step {
    fn play(self, ends: &mut [End; 2], server: &dyn ServerCrypto) {
        let side = |is_server| {
            if is_server {
                Side::Server
            } else {
                Side::Client
            }
        };
        match self {
            Self::Genuine { from_server, len } => {
                let from = side(from_server);
                // Mostly all of it.
                let len = if len < 256 { usize::MAX } else { len.into() };
                if let Some((level, bytes)) = ends[from as usize].next(len) {
                    ends[!from as usize].hear(level, &bytes);
                }
            }
            Self::Damaged {
                from_server,
                changes,
            } => {
                let from = side(from_server);
                if let Some((level, mut bytes)) = ends[from as usize].next(usize::MAX) {
                    for (at, mask) in changes {
                        let at = usize::from(at) % bytes.len();
                        bytes[at] ^= mask;
                    }
                    let _ = server.hello(&bytes);
                    ends[!from as usize].hear(level, &bytes);
                }
            }
            Self::MadeUp {
                to_server,
                level: nth,
                bytes,
            } => {
                let _ = server.hello(&bytes);
                ends[side(to_server) as usize].hear(level(nth), &bytes);
            }
            Self::Message {
                to_server,
                level: nth,
                kind,
                body,
            } => {
                let mut message = vec![kind % 32];
                message.extend(&(body.len() as u32).to_be_bytes()[1..]);
                message.extend(body);
                let _ = server.hello(&message);
                ends[side(to_server) as usize].hear(level(nth), &message);
            }
        }
    }
}
