//! Tests of the endpoint with toy cryptography: what it answers, admits and routes.

mod admission;
mod answers;
mod hostile;
mod routing;
mod toy;
