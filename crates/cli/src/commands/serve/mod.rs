//! `serve`: a directory or an upstream over HTTP/3, HTTP/2 and HTTP/1.1 on one port number, and files
//! over `hq-interop`.

pub(crate) mod args;
mod content;
mod echo;
mod log;

use std::net::SocketAddr;
use std::sync::Arc;

use swiftwater::{Connection, EarlyData, RetryPolicy, Server, ServerBuilder};
use swiftwater_http::tcp::{Certificates, RunningServer, TcpServer, server_config};
use swiftwater_http::udp::{ALPN_HTTP3, H3Server};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Duration, timeout};

use self::args::{ServeArgs, ZeroRtt};
use self::content::{Content, content, with_alt_svc};
use self::echo::with_echo;
pub(crate) use self::log::announce;
use self::log::{announce_tcp, report_file};
use crate::cli::IdentityArgs;
use crate::exit::{Exit, Failure, plain_io_error};
use crate::hq;
use crate::hq::service::serve_connection;
use crate::identity::{Identity, default_state_dir};
use crate::output;
use crate::runtime::{interrupted, stop_requested};
use crate::site::Site;
use crate::transport::{farewell, listen, server};

/// Ports to try when any will do: one that is free for UDP may be taken for TCP.
const PORT_ATTEMPTS: usize = 20;

pub(crate) async fn run(args: ServeArgs) -> Result<(), Failure> {
    let site = site(&args)?;
    let content = content(&args)?;
    let identity = identity(&args.identity)?;
    let protocols: &[&[u8]] = match site {
        Some(_) => &[ALPN_HTTP3, hq::ALPN],
        None => &[ALPN_HTTP3],
    };
    let mut builder = server(&identity, protocols, &args.tuning)
        .transport(|transport| transport.handshake_timeout = args.handshake_timeout)
        .workers(args.workers);
    for &address in &args.preferred_address {
        builder = builder.preferred_address(address);
    }
    if args.retry {
        builder = builder.retry(RetryPolicy::Always);
    }
    builder = builder.early_data(match args.zero_rtt {
        ZeroRtt::Accept => EarlyData::Accept,
        ZeroRtt::Reject => EarlyData::Reject,
    });
    let (server, listener) = bind(&builder, args.listen, args.no_tcp).await?;
    let what = match (&args.upstream, &site) {
        (None, Some(site)) => format!("serving {}", site.root().display()),
        _ => "forwarding to the upstream".to_owned(),
    };
    announce(&server, &identity, &what, args.json)?;
    let tcp = match listener {
        Some(listener) => {
            let address = server.local_addr();
            announce_tcp(address, args.json)?;
            let content = with_alt_svc(content.clone(), address.port());
            Some(serve_tcp(&identity, listener, content)?)
        }
        None => None,
    };

    let (drain, draining) = watch::channel(false);
    let mut http3 = H3Server::default();
    let mut content = content;
    if let Some(path) = args.webtransport_echo {
        http3 = http3.webtransport(echo::SESSIONS);
        content = with_echo(content, path, args.json);
    }
    let desk = Desk {
        http3,
        content,
        site: site.map(Arc::new),
        draining,
        json: args.json,
    };
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop_requested());
    loop {
        tokio::select! {
            connection = server.accept() => {
                let Some(connection) = connection else { break };
                connections.spawn(desk.clone().serve(connection));
            }
            Some(_) = connections.join_next() => {}
            stopped = &mut stop => {
                stopped?;
                break;
            }
        }
    }
    server.endpoint().set_server_config(None);
    drain.send_replace(true);
    desk.http3.drain();
    let outcome = finish(&mut connections, tcp, args.grace).await;
    farewell(&server).await;
    outcome
}

/// The directory for `hq-interop`; none if there is an upstream instead.
fn site(args: &ServeArgs) -> Result<Option<Site>, Failure> {
    let Some(directory) = &args.directory else {
        return Ok(None);
    };
    Site::new(directory).map(Some).map_err(|error| {
        let why = plain_io_error(&error);
        Failure::new(
            Exit::LocalFile,
            format_args!("cannot serve {}: {why}", directory.display()),
        )
    })
}

/// Binds UDP, and TCP on the same port unless `no_tcp`.
pub(crate) async fn bind(
    builder: &ServerBuilder,
    address: SocketAddr,
    no_tcp: bool,
) -> Result<(Server, Option<TcpListener>), Failure> {
    let mut attempts = 1;
    loop {
        let server = listen(builder, address)?;
        if no_tcp {
            return Ok((server, None));
        }
        let bound = server.local_addr();
        match TcpListener::bind(bound).await {
            Ok(listener) => return Ok((server, Some(listener))),
            Err(_) if address.port() == 0 && attempts < PORT_ATTEMPTS => attempts += 1,
            Err(error) => {
                let why = plain_io_error(&error);
                return Err(Failure::new(
                    Exit::Listen,
                    format_args!("cannot listen on TCP {bound}: {why} (--no-tcp does without)"),
                ));
            }
        }
    }
}

fn serve_tcp(
    identity: &Identity,
    listener: TcpListener,
    content: Content,
) -> Result<RunningServer, Failure> {
    let certificates = Certificates::from_pem(&identity.chain, &identity.key)
        .map_err(|error| Failure::new(Exit::Certificate, error))?;
    let config = server_config(Arc::new(certificates))
        .map_err(|error| Failure::new(Exit::Certificate, error))?;
    Ok(TcpServer::tls(Arc::new(config)).serve(listener, content)?)
}

/// What every QUIC connection is served with.
#[derive(Clone)]
struct Desk {
    http3: H3Server,
    content: Content,
    site: Option<Arc<Site>>,
    draining: watch::Receiver<bool>,
    json: bool,
}

impl Desk {
    async fn serve(self, connection: Connection) {
        let client = connection.remote_address();
        let wants_files = connection.alpn().is_some_and(|alpn| alpn == hq::ALPN);
        if let Some(site) = self.site.filter(|_| wants_files) {
            let log = move |served| report_file(client, &served, self.json);
            return serve_connection(connection, site, self.draining, log).await;
        }
        if let Err(error) = self.http3.serve(connection, self.content).await {
            tracing::info!(%client, %error, "a connection ended badly");
        }
    }
}

/// Waits for the requests in progress.
async fn finish(
    connections: &mut JoinSet<()>,
    tcp: Option<RunningServer>,
    grace: Duration,
) -> Result<(), Failure> {
    let is_idle = connections.is_empty() && tcp.as_ref().is_none_or(|tcp| tcp.connections() == 0);
    if is_idle {
        return Ok(());
    }
    output::note("stopping: running downloads may end (Ctrl-C again stops at once)");
    let cut = async {
        match tcp {
            Some(tcp) => tcp.drain(grace).await.cut,
            None => 0,
        }
    };
    let all = timeout(grace, async {
        while connections.join_next().await.is_some() {}
    });
    let unfinished = || Failure::new(Exit::Interrupted, "stopped before all downloads had ended");
    tokio::select! {
        (ended, cut) = async { tokio::join!(all, cut) } => match ended {
            Ok(()) if cut == 0 => Ok(()),
            _ => Err(unfinished()),
        },
        stopped = stop_requested() => {
            stopped?;
            Err(interrupted())
        }
    }
}

/// The certificate that the flags ask for.
pub(crate) fn identity(args: &IdentityArgs) -> Result<Identity, Failure> {
    if let (Some(cert), Some(key)) = (&args.cert, &args.key) {
        return Identity::from_files(cert, key);
    }
    let state_dir = match &args.state_dir {
        Some(directory) => directory.clone(),
        None => default_state_dir()?,
    };
    Identity::development(&state_dir, &args.names)
}
