//! Ori, the one intermediate representation.
