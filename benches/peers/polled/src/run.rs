//! A program from its command line to its end.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use job::events::{self, EndOfInput};
use job::{Arguments, ClientArguments, Job, Role as End, ServerArguments};

use crate::client::{Bulk, Client, Handshakes, Hold, Requests};
use crate::library::{Endpoint, Library};
use crate::server::Server;
use crate::streams::Failure;

/// Interval of checking for the end of standard input.
const LOOK: Duration = Duration::from_millis(20);

/// Runs the job of the command line with this library.
pub fn run<L: Library>() -> Result<(), Failure> {
    match Arguments::of_process().role {
        End::Server(arguments) => serve::<L>(&arguments),
        End::Client(arguments) => match arguments.job {
            Job::Bulk { bytes, direction } => {
                perform::<L, _>(&arguments, Bulk::new(bytes, direction))
            }
            Job::Requests {
                seconds,
                in_flight,
                up,
                down,
            } => perform::<L, _>(
                &arguments,
                Requests::new(Duration::from_secs_f64(seconds), in_flight, up, down),
            ),
            Job::Handshakes { count, parallel } => {
                perform::<L, _>(&arguments, Handshakes::new(count, parallel))
            }
            Job::Hold {
                connections,
                streams,
            } => perform::<L, _>(&arguments, Hold::new(connections, streams)),
        },
    }
}

fn serve<L: Library>(arguments: &ServerArguments) -> Result<(), Failure> {
    if arguments.workers > 1 {
        return Err(Failure::OneWorker);
    }
    let mut endpoint = L::server(arguments, Rc::new(RefCell::new(Server::default())))?;
    events::ready();
    loop {
        endpoint.turn(None)?;
    }
}

fn perform<L: Library, C: Client + 'static>(
    arguments: &ClientArguments,
    client: C,
) -> Result<(), Failure> {
    let client = Rc::new(RefCell::new(client));
    let mut endpoint = L::client(arguments, Rc::clone(&client))?;
    while !client.borrow().is_done() {
        while client.borrow_mut().wants_connection() {
            endpoint.connect()?;
        }
        endpoint.turn(None)?;
    }
    let end = EndOfInput::watch();
    while !end.is_here() {
        endpoint.turn(Some(LOOK))?;
    }
    endpoint.close()
}
