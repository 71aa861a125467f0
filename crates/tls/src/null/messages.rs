//! The messages of the null handshake: named, framed and sized like those of TLS 1.3 (RFC 8446,
//! section 4), but with other contents. A message is a type, a length of three bytes and a body;
//! the rest of a body is filled with zeros.

use swiftwater_quic::crypto::{Hello, TlsError};
use swiftwater_wire::ErrorCode;

/// Bytes of a message before its body.
const HEADER_LEN: usize = 4;

/// Longest body that is sent or accepted.
pub(super) const MAX_BODY_LEN: usize = 65_535;

/// Lengths of messages in TLS, as rustls sends them over QUIC with an X25519 share, SHA-256 and
/// Ed25519 signatures.
const SERVER_HELLO_LEN: usize = 90;
const CERTIFICATE_VERIFY_LEN: usize = 72;
const FINISHED_LEN: usize = 36;

/// Bytes of a Certificate message of TLS in addition to one certificate.
const CERTIFICATE_OVERHEAD: usize = 13;

/// Bytes of a `ServerHello` in addition when it resumes.
const PRE_SHARED_KEY_LEN: usize = 6;

/// A ticket of a typical size.
const TICKET_LEN: usize = 240;

/// Bytes of TLS's `ClientHello` in addition to these fields: always, with a server name, and with
/// ALPN.
const CLIENT_HELLO_FILLER: [usize; 3] = [167, 9, 6];

/// The same for `EncryptedExtensions`.
const ENCRYPTED_EXTENSIONS_FILLER: [usize; 3] = [3, 4, 7];

fn filler([always, name, alpn]: [usize; 3], has_name: bool, has_alpn: bool) -> usize {
    always + if has_name { name } else { 0 } + if has_alpn { alpn } else { 0 }
}

/// Alerts of TLS (RFC 8446, section 6; RFC 7301, section 3.2).
pub(super) mod alert {
    pub(in super::super) const UNEXPECTED_MESSAGE: u8 = 10;
    pub(in super::super) const DECODE_ERROR: u8 = 50;
    pub(in super::super) const DECRYPT_ERROR: u8 = 51;
    pub(in super::super) const ILLEGAL_PARAMETER: u8 = 47;
    pub(in super::super) const NO_APPLICATION_PROTOCOL: u8 = 120;
}

/// The types of messages, with TLS's numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    ClientHello = 1,
    ServerHello = 2,
    NewSessionTicket = 4,
    EncryptedExtensions = 8,
    Certificate = 11,
    CertificateVerify = 15,
    Finished = 20,
}

impl Kind {
    fn from_byte(byte: u8) -> Result<Self, TlsError> {
        [
            Self::ClientHello,
            Self::ServerHello,
            Self::NewSessionTicket,
            Self::EncryptedExtensions,
            Self::Certificate,
            Self::CertificateVerify,
            Self::Finished,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
        .ok_or_else(|| {
            failure(
                alert::UNEXPECTED_MESSAGE,
                format!("unknown handshake message {byte}"),
            )
        })
    }
}

/// An error with the code of a TLS alert.
pub(super) fn failure(alert: u8, reason: impl Into<String>) -> TlsError {
    TlsError {
        code: ErrorCode::crypto(alert),
        reason: reason.into(),
    }
}

/// Kind and length, header included, of the first message in `buffer`; `None` if it isn't complete
/// yet.
pub(super) fn first(buffer: &[u8]) -> Result<Option<(Kind, usize)>, TlsError> {
    let Some(&[kind, a, b, c]) = buffer.first_chunk::<HEADER_LEN>() else {
        return Ok(None);
    };
    let kind = Kind::from_byte(kind)?;
    let body_len = u32::from_be_bytes([0, a, b, c]) as usize;
    if body_len > MAX_BODY_LEN {
        let reason = format!("{kind:?} of {body_len} bytes");
        return Err(failure(alert::DECODE_ERROR, reason));
    }
    let len = HEADER_LEN + body_len;
    Ok((buffer.len() >= len).then_some((kind, len)))
}

/// The transport parameters in the `ClientHello` at the start of `bytes`.
pub(super) fn look(bytes: &[u8]) -> Hello<'_> {
    match first(bytes) {
        Ok(None) => Hello::Incomplete,
        Ok(Some((Kind::ClientHello, len))) => match ClientHello::parameters(&bytes[..len]) {
            Ok(parameters) => Hello::Parameters(parameters),
            Err(_) => Hello::Opaque,
        },
        Ok(Some(_)) | Err(_) => Hello::Opaque,
    }
}

/// Frames `fields` followed by `filler` zeros; `None` if that is too long.
fn frame(kind: Kind, fields: &[u8], filler: usize) -> Option<Vec<u8>> {
    let body_len = fields.len() + filler;
    if body_len > MAX_BODY_LEN {
        return None;
    }
    let mut message = Vec::with_capacity(HEADER_LEN + body_len);
    message.push(kind as u8);
    message.extend_from_slice(&(body_len as u32).to_be_bytes()[1..]);
    message.extend_from_slice(fields);
    message.resize(HEADER_LEN + body_len, 0);
    Some(message)
}

/// A message of `len` bytes that starts with `fields`.
fn fixed(kind: Kind, fields: &[u8], len: usize) -> Vec<u8> {
    frame(kind, fields, len - HEADER_LEN - fields.len()).expect("the length is far below the limit")
}

/// Contents of a `ClientHello`.
pub(super) struct ClientHello {
    pub(super) server_name: Option<String>,
    pub(super) alpn: Vec<Vec<u8>>,
    pub(super) parameters: Vec<u8>,
    /// The ticket of the session to resume; empty for none.
    pub(super) ticket: Vec<u8>,
    /// Early data follow.
    pub(super) early_data: bool,
}

impl ClientHello {
    /// The message, or `None` if a part is too long for its field.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        put_short(
            &mut body,
            self.server_name.as_deref().unwrap_or_default().as_bytes(),
        )?;
        body.push(u8::try_from(self.alpn.len()).ok()?);
        for protocol in &self.alpn {
            put_short(&mut body, protocol)?;
        }
        put_long(&mut body, &self.parameters)?;
        // Without a ticket, the filler reads as none.
        if !self.ticket.is_empty() {
            put_long(&mut body, &self.ticket)?;
            body.push(u8::from(self.early_data));
        }
        let has_name = self.server_name.is_some();
        let filler = filler(CLIENT_HELLO_FILLER, has_name, !self.alpn.is_empty());
        frame(Kind::ClientHello, &body, filler)
    }

    /// The transport parameters alone.
    fn parameters(message: &[u8]) -> Result<&[u8], TlsError> {
        let mut fields = Fields::of(message)?;
        fields.short()?;
        for _ in 0..fields.byte()? {
            fields.short()?;
        }
        fields.long()
    }

    pub(super) fn decode(message: &[u8]) -> Result<Self, TlsError> {
        let mut fields = Fields::of(message)?;
        let name = std::str::from_utf8(fields.short()?)
            .map_err(|_| failure(alert::DECODE_ERROR, "a server name that is not UTF-8"))?;
        let server_name = (!name.is_empty()).then(|| name.to_owned());
        let count = fields.byte()?;
        let alpn = (0..count)
            .map(|_| fields.short().map(<[u8]>::to_vec))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            server_name,
            alpn,
            parameters: fields.long()?.to_vec(),
            ticket: fields.long()?.to_vec(),
            early_data: fields.byte()? == 1,
        })
    }
}

/// Contents of `EncryptedExtensions`.
pub(super) struct EncryptedExtensions {
    /// Empty if no protocol was negotiated.
    pub(super) alpn: Vec<u8>,
    pub(super) parameters: Vec<u8>,
    /// Early data are accepted.
    pub(super) early_data: bool,
}

impl EncryptedExtensions {
    /// The message, or `None` if a part is too long for its field. TLS acknowledges a server name
    /// here, which is part of the size.
    pub(super) fn encode(&self, has_name: bool) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        put_short(&mut body, &self.alpn)?;
        put_long(&mut body, &self.parameters)?;
        // As long as the extension of TLS; otherwise the filler reads as false.
        if self.early_data {
            body.extend_from_slice(&[1, 0, 0, 0]);
        }
        let has_alpn = !self.alpn.is_empty();
        let filler = filler(ENCRYPTED_EXTENSIONS_FILLER, has_name, has_alpn);
        frame(Kind::EncryptedExtensions, &body, filler)
    }

    pub(super) fn decode(message: &[u8]) -> Result<Self, TlsError> {
        let mut fields = Fields::of(message)?;
        Ok(Self {
            alpn: fields.short()?.to_vec(),
            parameters: fields.long()?.to_vec(),
            early_data: fields.byte()? == 1,
        })
    }
}

/// A `ServerHello`; the one that resumes a session is longer by an extension.
pub(super) fn server_hello(resumes: bool) -> Vec<u8> {
    let longer = if resumes { PRE_SHARED_KEY_LEN } else { 0 };
    fixed(
        Kind::ServerHello,
        &[u8::from(resumes)],
        SERVER_HELLO_LEN + longer,
    )
}

/// True if a `ServerHello` resumes the session that was offered.
pub(super) fn server_resumes(message: &[u8]) -> Result<bool, TlsError> {
    Ok(Fields::of(message)?.byte()? == 1)
}

/// Longest chain that fits a Certificate message.
pub(super) const MAX_CHAIN_LEN: usize = HEADER_LEN + MAX_BODY_LEN - CERTIFICATE_OVERHEAD;

/// A Certificate message with a chain of `chain_len` bytes, at most [`MAX_CHAIN_LEN`].
pub(super) fn certificate(chain_len: usize) -> Vec<u8> {
    let len = CERTIFICATE_OVERHEAD + chain_len.min(MAX_CHAIN_LEN);
    fixed(Kind::Certificate, &[], len)
}

pub(super) fn certificate_verify() -> Vec<u8> {
    fixed(Kind::CertificateVerify, &[], CERTIFICATE_VERIFY_LEN)
}

/// A Finished message with `proof`.
pub(super) fn finished(proof: u64) -> Vec<u8> {
    fixed(Kind::Finished, &proof.to_be_bytes(), FINISHED_LEN)
}

/// A `NewSessionTicket` with these contents, filled up to the usual size.
pub(super) fn ticket(contents: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    put_long(&mut body, contents)?;
    let filler = (TICKET_LEN - HEADER_LEN).saturating_sub(body.len());
    frame(Kind::NewSessionTicket, &body, filler)
}

/// Reads the contents of a `NewSessionTicket`.
pub(super) fn ticket_contents(message: &[u8]) -> Result<&[u8], TlsError> {
    Fields::of(message)?.long()
}

fn put_short(body: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
    body.push(u8::try_from(bytes.len()).ok()?);
    body.extend_from_slice(bytes);
    Some(())
}

fn put_long(body: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
    body.extend_from_slice(&u16::try_from(bytes.len()).ok()?.to_be_bytes());
    body.extend_from_slice(bytes);
    Some(())
}

/// The unread rest of a body.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The body of `message`.
    fn of(message: &'a [u8]) -> Result<Self, TlsError> {
        let mut fields = Self(message);
        fields.take(HEADER_LEN)?;
        Ok(fields)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], TlsError> {
        let (field, rest) = self.0.split_at_checked(len).ok_or_else(|| {
            failure(
                alert::DECODE_ERROR,
                "a handshake message ends inside a field",
            )
        })?;
        self.0 = rest;
        Ok(field)
    }

    fn byte(&mut self) -> Result<u8, TlsError> {
        self.take(1).map(|byte| byte[0])
    }

    /// Bytes with a length prefix of one byte.
    fn short(&mut self) -> Result<&'a [u8], TlsError> {
        let len = self.byte()?;
        self.take(usize::from(len))
    }

    /// Bytes with a length prefix of two bytes.
    fn long(&mut self) -> Result<&'a [u8], TlsError> {
        let len = self.take(2)?;
        self.take(usize::from(u16::from_be_bytes([len[0], len[1]])))
    }
}
