//! Policies other than the defaults act through the public interface of the transport: each seam with
//! a second implementation, on simulated links.

mod copies;
mod feedback;
mod loss_judge;
mod scheduler;
