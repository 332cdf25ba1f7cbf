//! Emits `phases.rs`: the phases in the order in which they run.

use super::{camel, plain_enum};
use crate::check::phases::STATES;
use crate::model::Model;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// The generated items.
pub fn emit(model: &Model) -> TokenStream {
    let mut rows: Vec<_> = model.phases.iter().collect();
    rows.sort_by_key(|r| r.order);
    let variants: Vec<_> = rows.iter().map(|r| (r.name.clone(), r.name.clone())).collect();
    let phase = plain_enum("Phase", "A phase, known by its name; the number is its place in the order.", &variants);
    let states: Vec<_> = STATES.iter().map(|state| (camel(state), state.to_string())).collect();
    let state = plain_enum("State", "Where the work of a phase is done.", &states);
    let count = rows.len();
    let infos = rows.iter().map(|r| {
        let (seed, category) = (&r.seed, &r.category);
        let (state, by, why) = (format_ident!("{}", camel(&r.state)), &r.by, &r.why);
        let progress = match r.progress {
            Some(value) => quote! { Some(#value) },
            None => quote! { None },
        };
        quote! { PhaseInfo {
            seed: &[#(#seed),*], progress: #progress, category: #category, state: State::#state, by: #by, why: #why,
        } }
    });
    quote! {
        #phase
        #state
        /// Facts of each phase, by [`Phase`].
        pub static PHASES: [PhaseInfo; #count] = [#(#infos),*];
    }
}
