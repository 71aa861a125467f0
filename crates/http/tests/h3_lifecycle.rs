//! How requests and connections end: cancellation, GOAWAY, limits, early data (RFC 9114, sections
//! 4.1.1, 5 and 10.5).

mod cancel;
mod closing;
mod early_data;
mod goaway;
mod keep_alive;
mod limits;
