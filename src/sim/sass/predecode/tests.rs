//! Tests of predecoding.
