//! Emits `latency.rs`: latency classes, and one model per group of targets.

use super::{bytes, camel, plain_enum};
use crate::model::Model;
use crate::model::latency::{Distances, LatencyModel, Side, Special, Stall};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// The generated items.
pub fn emit(model: &Model) -> TokenStream {
    let l = &model.latency;
    let names: Vec<_> = l.classes.iter().map(|c| (camel(&c.name), c.name.clone())).collect();
    let classes = plain_enum(
        "LatencyClass",
        "What the time between two instructions depends on: the pipe and the part of an operand.",
        &names,
    );
    let infos = l.classes.iter().map(|c| {
        let (announced, late, in_order) = (c.result == "scoreboard", c.sources != "early", c.in_order);
        let late_uniform = c.sources == "late_all";
        let (queue, alone, expected) = (queue(model, &c.queue), c.alone, c.expected);
        quote! { ClassInfo {
            announced: #announced, late: #late, late_uniform: #late_uniform, in_order: #in_order, queue: #queue, alone: #alone, expected: #expected,
        } }
    });
    let models = l.models.iter().map(|m| one(model, m, (&m.distances, &m.stalls), 0));
    let demanded = l.models.iter().map(|m| one(model, m, (&m.demanded.0, &m.demanded.1), 1));
    let (count, number) = (l.classes.len(), l.models.len());
    let of_target = model.targets.targets.iter().enumerate().map(|(i, _)| {
        let found = l.models.iter().position(|m| m.targets.contains(&i));
        found.map_or(u8::MAX, |m| m as u8)
    });
    let targets = model.targets.targets.len();
    quote! {
        #classes
        /// Facts of the classes, in table order.
        pub static CLASSES: [ClassInfo; #count] = [#(#infos),*];
        /// The models, in table order.
        pub static LATENCIES: [Latency; #number] = [#(#models),*];
        /// The same latencies as the simulator and the checker require them.
        static DEMANDED: [Latency; #number] = [#(#demanded),*];
        /// Index of the model of each target, by the target's index in the table; 255 for none.
        static LATENCY_OF_TARGET: [u8; #targets] = [#(#of_target),*];
    }
}

/// The number of a read queue: its index in the order of first mention, from 1; 0 for none.
fn queue(model: &Model, name: &str) -> u8 {
    let mut names: Vec<&str> = Vec::new();
    for class in model.latency.classes.iter().filter(|c| !c.queue.is_empty()) {
        if !names.contains(&class.queue.as_str()) {
            names.push(&class.queue);
        }
    }
    names.iter().position(|n| *n == name).map_or(0, |at| at as u8 + 1)
}

/// A model with distances and minimum stalls; `whose` cycles of the pairs are taken.
fn one(model: &Model, m: &LatencyModel, (distances, stalls): (&Distances, &[Stall]), whose: usize) -> TokenStream {
    let (name, scheduled) = (&m.row.name, m.row.scheduled);
    let base = bytes(&m.base.iter().map(|c| *c as u8).collect::<Vec<_>>());
    let first = |op: usize| m.specials.partition_point(|s| s.op < op) as u16;
    let first = (0..=m.base.len()).map(first);
    let specials = m.specials.iter().map(|s| special(model, s));
    let kinds = distances.iter().map(|files| {
        let files = files.iter().map(|lines| {
            let lines = lines.iter().map(|line| bytes(line));
            quote!(&[#(#lines),*])
        });
        quote!(&[#(#files),*])
    });
    let stalls = stalls.iter().map(|[always, guarded]| quote!([#always, #guarded]));
    let pairs = m.pairs.iter().map(|pair| {
        let (first, second, cycles) = (side(model, &pair.first), side(model, &pair.second), pair.cycles[whose]);
        quote!(Pair { first: #first, second: #second, cycles: #cycles })
    });
    quote! {
        Latency {
            name: #name, scheduled: #scheduled, base: #base, specials: &[#(#specials),*], first: &[#(#first),*],
            distances: [#(#kinds),*],
            stalls: &[#(#stalls),*], pairs: &[#(#pairs),*],
        }
    }
}

/// One side of a pair.
fn side(model: &Model, side: &Side) -> TokenStream {
    let op = format_ident!("{}", model.ori.ops[side.op].row.op);
    let role = match &side.role {
        Some((role, has)) => {
            let role = format_ident!("{}", camel(role));
            quote!(Some((Role::#role, #has)))
        }
        None => quote!(None),
    };
    quote!(Side { op: Op::#op, role: #role })
}

fn special(model: &Model, s: &Special) -> TokenStream {
    let when = s.when.iter().map(|(kind, value)| {
        let (kind, value) = (format_ident!("{}", camel(&model.ori.kinds[*kind].name)), *value as u8);
        quote!((Mod::#kind, #value))
    });
    let (role, word) = match s.part {
        None => (u8::MAX, u8::MAX),
        Some((role, word)) => (role as u8, word.unwrap_or(u8::MAX)),
    };
    let class = s.class as u8;
    quote!(Special { when: &[#(#when),*], role: #role, word: #word, class: #class })
}
