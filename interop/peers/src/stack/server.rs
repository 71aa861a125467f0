//! A file server over `hq-interop`, for quinn and for noq, which is close enough to share the source.
//! The program names its library `quic`.

use std::error::Error;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use swiftwater_interop_program::arguments::{IDLE, KEY_UPDATE_AFTER, ServerArguments, refuse};
use swiftwater_interop_program::hq;
use swiftwater_interop_program::tls::read_identity;

use crate::paths::Paths;
use crate::quic::{
    Connection, ConnectionError, Endpoint, EndpointConfig, IdleTimeout, Incoming, RecvStream,
    SendStream, ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use crate::tls;

/// Bytes written to a stream at once.
const BLOCK: usize = 64 * 1024;

/// Serves until the program is ended.
pub(crate) async fn run(
    stack: &str,
    arguments: ServerArguments,
    paths: Paths,
) -> Result<(), Box<dyn Error>> {
    refuse(stack, &[("has no version 2", arguments.v2)]);
    let identity = read_identity(&arguments.cert, &arguments.key)?;
    let crypto = tls::server(identity, hq::ALPN, arguments.suite, arguments.zero_rtt)?;
    let mut endpoint_config = EndpointConfig::default();
    if let Some(version) = arguments.quic_version {
        endpoint_config.supported_versions(vec![version]);
    }
    paths.configure_endpoint(&mut endpoint_config);
    let mut transport = TransportConfig::default();
    paths.configure_transport(&mut transport);
    transport.max_idle_timeout(Some(IdleTimeout::try_from(IDLE)?));
    let mut server_config = ServerConfig::with_crypto(crypto);
    server_config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::new(
        endpoint_config,
        Some(server_config),
        UdpSocket::bind(arguments.listen)?,
        Arc::new(TokioRuntime),
    )?;
    println!("listening on {}", endpoint.local_addr()?);
    let root: Arc<Path> = arguments.dir.into();
    while let Some(incoming) = endpoint.accept().await {
        if arguments.retry && !incoming.remote_address_validated() && incoming.may_retry() {
            incoming.retry()?;
            continue;
        }
        let (root, paths) = (Arc::clone(&root), paths.clone());
        let (key_update, early) = (arguments.key_update, arguments.zero_rtt);
        tokio::spawn(async move {
            match serve(incoming, root, &paths, key_update, early).await {
                Ok(code) => println!("connection ended: {:#x}", code.into_inner()),
                Err(error) => println!("connection failed: {error}"),
            }
        });
    }
    Ok(())
}

/// Answers a client's requests and returns the code with which it closed.
async fn serve(
    incoming: Incoming,
    root: Arc<Path>,
    paths: &Paths,
    key_update: bool,
    early: bool,
) -> Result<VarInt, ConnectionError> {
    let connecting = incoming.accept()?;
    let connection = if early {
        match connecting.into_0rtt() {
            Ok((connection, _)) => connection,
            Err(connecting) => connecting.await?,
        }
    } else {
        connecting.await?
    };
    println!("connection");
    let _paths = paths.attend(&connection);
    let until_update = key_update.then(|| Arc::new(AtomicU64::new(0)));
    loop {
        let (send, receive) = match connection.accept_bi().await {
            Err(ConnectionError::ApplicationClosed(close)) => return Ok(close.error_code),
            accepted => accepted?,
        };
        let (root, connection) = (Arc::clone(&root), connection.clone());
        let until_update = until_update.clone();
        tokio::spawn(async move {
            let rekey = until_update.as_deref().map(|sent| (&connection, sent));
            if let Err(error) = answer(send, receive, &root, rekey).await {
                println!("request failed: {error}");
            }
        });
    }
}

/// Answers one request. `rekey` counts the connection's bytes if its keys are to be updated.
async fn answer(
    mut send: SendStream,
    mut receive: RecvStream,
    root: &Path,
    rekey: Option<(&Connection, &AtomicU64)>,
) -> Result<(), Box<dyn Error>> {
    let request = receive.read_to_end(hq::MAX_REQUEST).await?;
    println!("request {}", String::from_utf8_lossy(&request).trim_end());
    let content = match hq::requested_file(root, &request) {
        Some(path) => tokio::fs::read(path).await.ok(),
        None => None,
    };
    let Some(content) = content else {
        send.reset(VarInt::from_u32(hq::NOT_FOUND))?;
        return Ok(());
    };
    for block in content.chunks(BLOCK) {
        send.write_all(block).await?;
        if let Some((connection, sent)) = rekey {
            let before = sent.fetch_add(block.len() as u64, Ordering::Relaxed);
            let after = before + block.len() as u64;
            if before / KEY_UPDATE_AFTER != after / KEY_UPDATE_AFTER {
                connection.force_key_update();
                println!("key update after {after} bytes");
            }
        }
    }
    send.finish()?;
    Ok(())
}
