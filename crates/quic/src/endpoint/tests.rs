//! Tests of the endpoint with toy cryptography: what it answers, admits and routes.

mod accept;
mod admission;
mod answers;
mod forgeries;
mod hostile;
mod numbers;
mod routing;
mod shares;
mod toy;
mod workers;
