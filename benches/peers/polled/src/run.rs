//! A program from its command line to its end.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use job::events::{self, EndOfInput};
use job::{Arguments, ClientArguments, Job, Role as End, ServerArguments};

use crate::client::{Bulk, Client, Handshakes, Hold, Requests};
use crate::library::{Endpoint, Library};
use crate::role::Role;
use crate::server::Server;
use crate::streams::Failure;

/// Interval of checking for the end of standard input.
const LOOK: Duration = Duration::from_millis(20);

/// Runs the job of the command line with this library.
pub fn run<L: Library>(arguments: Arguments) -> Result<(), Failure> {
    match arguments.role {
        End::Server(arguments) => {
            let role = Rc::new(RefCell::new(Server::default()));
            serve(L::server(&arguments, role)?, &arguments)
        }
        End::Client(arguments) => match arguments.job {
            Job::Bulk { bytes, direction } => {
                connect::<L, _>(&arguments, Bulk::new(bytes, direction))
            }
            Job::Requests {
                seconds,
                in_flight,
                up,
                down,
            } => connect::<L, _>(
                &arguments,
                Requests::new(Duration::from_secs_f64(seconds), in_flight, up, down),
            ),
            Job::Handshakes { count, parallel } => {
                connect::<L, _>(&arguments, Handshakes::new(count, parallel))
            }
            Job::Hold {
                connections,
                streams,
            } => connect::<L, _>(&arguments, Hold::new(connections, streams)),
        },
    }
}

fn connect<L: Library, C: Client + Role + 'static>(
    arguments: &ClientArguments,
    client: C,
) -> Result<(), Failure> {
    let client = Rc::new(RefCell::new(client));
    perform(L::client(arguments, Rc::clone(&client))?, &client)
}

/// Keeps a server's endpoint going.
pub fn serve(mut endpoint: impl Endpoint, arguments: &ServerArguments) -> Result<(), Failure> {
    if arguments.workers > 1 {
        return Err(Failure::OneWorker);
    }
    events::ready();
    loop {
        endpoint.turn(None)?;
    }
}

/// Keeps a client's endpoint going until the job is done and standard input has ended.
pub fn perform(mut endpoint: impl Endpoint, client: &RefCell<impl Client>) -> Result<(), Failure> {
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
