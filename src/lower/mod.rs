//! Lowering of PTX to Ori, one file per operation family.
