//! `perf loopback`: both ends in one process, each with its own thread and runtime, so that the CPU
//! time of each is measured.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use swiftwater::{CertificateDer, DevCertificate};
use tokio::sync::oneshot;

use super::args::PerfProtocol;
use super::client::{measure, parting, print};
use super::http::server::serve_tcp;
use super::server::{PROTOCOLS, serve};
use super::target::{Target, TargetSettings};
use crate::commands::serve::{InheritedSockets, bind};
use crate::cpu::thread_time;
use crate::exit::{Exit, Failure};
use crate::identity::Identity;
use crate::multipath::MultipathArgs;
use crate::perf::args::PerfLoopbackArgs;
use crate::runtime::{interrupted, single_threaded, stop_requested};
use crate::transport::{Trust, Tuning, farewell, server};

pub(crate) fn run(args: &PerfLoopbackArgs) -> Result<(), Failure> {
    let certificate = DevCertificate::generate(["localhost", "127.0.0.1"])
        .map_err(|error| Failure::new(Exit::Certificate, error))?;
    let identity = Identity::of(&certificate);
    let trusted = certificate.certificate_der();
    let (started, start) = mpsc::channel();
    let (stop, stopped) = oneshot::channel();
    let (protocol, tuning) = (args.protocol, args.tuning.clone());
    let paths = MultipathArgs {
        multipath: args.paths.is_used(),
        max_paths: args.paths.max_paths,
        scheduler: args.paths.scheduler.clone(),
        feedback: None,
        multipath_version: args.paths.multipath_version,
    };
    let server = thread::Builder::new()
        .name("perf-server".into())
        .spawn(move || serve_until(&identity, protocol, &tuning, &paths, &started, stopped))
        .map_err(Failure::from)?;
    let measured = match start.recv() {
        Ok(address) => run_client(args, address, trusted),
        // The thread ended without an address: joining it returns the reason.
        Err(_) => Err(Failure::new(Exit::Failure, "the server did not start")),
    };
    drop(stop);
    let server_cpu = server
        .join()
        .map_err(|_| Failure::new(Exit::Failure, "the server's thread failed"))??;
    let mut measurement = measured?;
    measurement.server_cpu(server_cpu);
    print(&measurement, args.json)
}

/// The server's thread: serves until stopped and returns the CPU time used.
fn serve_until(
    identity: &Identity,
    protocol: PerfProtocol,
    tuning: &Tuning,
    paths: &MultipathArgs,
    started: &mpsc::Sender<SocketAddr>,
    stopped: oneshot::Receiver<()>,
) -> Result<Option<Duration>, Failure> {
    single_threaded()?.block_on(async {
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let builder = paths.apply(server(identity, &PROTOCOLS, tuning));
        let (server, listener) = bind(
            &builder,
            any_port,
            !protocol.is_over_tcp(),
            &mut InheritedSockets::default(),
        )
        .await?;
        let _tcp = match listener {
            Some(listener) => Some(serve_tcp(identity, listener)?),
            None => None,
        };
        let start = thread_time();
        // If the receiver of the address is gone, `stopped` is signalled too.
        let _ = started.send(server.local_addr());
        tokio::select! {
            () = serve(&server, |_| {}) => {}
            _ = stopped => {}
        }
        let used = thread_time()
            .zip(start)
            .map(|(end, start)| end.saturating_sub(start));
        farewell(&server).await;
        Ok(used)
    })
}

/// The client runs in the calling thread.
fn run_client(
    args: &PerfLoopbackArgs,
    address: SocketAddr,
    trusted: CertificateDer<'static>,
) -> Result<super::report::Measurement, Failure> {
    single_threaded()?.block_on(async {
        let trust = Trust::Roots(vec![trusted]);
        let server = (address.ip().to_string(), address.port());
        let settings = TargetSettings {
            trust: &trust,
            tuning: &args.tuning,
            paths: &args.paths,
            time_limit: None,
        };
        let server = Target::new(args.protocol, server, &settings)?;
        let measured = tokio::select! {
            measured = measure(&server, &args.load, thread_time) => measured,
            stopped = stop_requested() => stopped.and(Err(interrupted())),
        };
        server.part(parting(&measured)).await;
        measured
    })
}
