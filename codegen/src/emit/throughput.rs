//! Emits `throughput.rs`: the issue costs of instructions, by group of targets.

use super::{camel, plain_enum};
use crate::model::Model;
use crate::model::throughput::Costs;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// The generated items.
pub fn emit(model: &Model) -> TokenStream {
    let t = &model.throughput;
    let names: Vec<_> = t.pipes.iter().map(|pipe| (camel(pipe), pipe.clone())).collect();
    let pipes = plain_enum("Pipe", "What issues one instruction after another.", &names);
    let rows = t.rows.iter().map(|row| {
        let pipe = format_ident!("{}", camel(&row.pipe));
        let (cycles, result, read) = (row.cycles, row.result, row.read);
        quote!(Pace { pipe: Pipe::#pipe, cycles: #cycles, result: #result, read: #read })
    });
    let groups = t.groups.iter().map(|costs| group(model, costs));
    let (count, number, targets) = (t.rows.len(), t.groups.len(), t.of_target.len());
    let of_target = t.of_target.iter().map(|group| group.map_or(u8::MAX, |g| g as u8));
    quote! {
        #pipes
        /// The rows, in table order.
        pub static PACES: [Pace; #count] = [#(#rows),*];
        /// The groups of targets with equal costs.
        static THROUGHPUTS: [Throughput; #number] = [#(#groups),*];
        /// Index of the group of each target, by the target's index in the table; 255 for none.
        static THROUGHPUT_OF_TARGET: [u8; #targets] = [#(#of_target),*];
    }
}

fn group(model: &Model, costs: &Costs) -> TokenStream {
    let base = costs.base.iter().map(|row| *row as u8);
    let specials = costs.specials.iter().map(|(op, (kind, value), row)| {
        let op = format_ident!("{}", model.ori.ops[*op].row.op);
        let kind = format_ident!("{}", camel(&model.ori.kinds[*kind].name));
        let (value, row) = (*value as u8, *row as u8);
        quote!((Op::#op, Mod::#kind, #value, #row))
    });
    quote!(Throughput { base: &[#(#base),*], specials: &[#(#specials),*] })
}
