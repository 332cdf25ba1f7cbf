//! Emits `images.rs`: the driver's functions for textures and surfaces, and their words.

use super::camel;
use super::ptx::ident;
use crate::model::Model;
use crate::model::images::{ARGUMENTS, Place};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// The generated items.
pub fn emit(model: &Model) -> TokenStream {
    let images = &model.images;
    let arguments = ARGUMENTS.map(|name| format_ident!("{}", camel(name)));
    let group = model.ptx.groups.iter().find(|g| g.row.group == "geometry");
    let list = |list: &[(usize, Place)]| {
        let items = list.iter().map(|(argument, place)| {
            let argument = &arguments[*argument];
            match place {
                Place::Register(number) => quote!((Argument::#argument, Place::Register(#number))),
                Place::Stack(at) => quote!((Argument::#argument, Place::Stack(#at))),
            }
        });
        quote!(&[#(#items),*])
    };
    let functions = images.functions.iter().map(|f| {
        let (what, name) = (format_ident!("{}", format!("{:?}", f.what)), &f.name);
        let geometry = match f.geometry.zip(group) {
            Some((text, group)) => {
                let text = ident(&group.texts[text].text);
                quote!(Some(Geometry::#text))
            }
            None => quote!(None),
        };
        let element = match f.element.map(|name| format_ident!("{}", camel(name))) {
            Some(ty) => quote!(Some(ScalarType::#ty)),
            None => quote!(None),
        };
        let (args, results, prototype) = (list(&f.args), list(&f.results), &f.prototype);
        quote! {
            Function {
                what: Call::#what, name: #name, geometry: #geometry, element: #element, args: #args, results: #results,
                prototype: #prototype
            }
        }
    });
    let fields = images.fields.iter().map(|f| {
        let [of, part] = [format!("{:?}", f.of), format!("{:?}", f.part)].map(|name| format_ident!("{name}"));
        let (mask, bits) = (f.mask, f.bits);
        quote!(Field { of: Word::#of, part: Part::#part, mask: #mask, bits: #bits })
    });
    let (count, fields_count) = (images.functions.len(), images.fields.len());
    quote! {
        /// What a function takes or gives back. Source: the legend of `lowering/image_calls.ron`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Argument { #(#arguments),* }
        /// The functions, in the order of the table.
        pub static FUNCTIONS: [Function; #count] = [#(#functions),*];
        static FIELDS: [Field; #fields_count] = [#(#fields),*];
    }
}
