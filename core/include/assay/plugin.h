// ASSAY_PLUGIN: the registration function of a plugin; included by one of its source files.
#pragma once

#include "assay/registrar.h"

#ifndef ASSAY_PLUGIN_NAME
#error "build plugins with assay_add_plugin(): it gives each one its note and its name"
#endif
#ifdef __FAST_MATH__
#error "-ffast-math and -Ofast change the arithmetic of the whole worker: leave them out"
#endif

#define ASSAY_JOIN_(a, b) a##b
#define ASSAY_JOIN(a, b) ASSAY_JOIN_(a, b)

/// ASSAY_PLUGIN(registrar) { registrar.add<my::Thing>({.name = "thing", ...}); }
#define ASSAY_PLUGIN(registrar)                                             \
  void ASSAY_JOIN(assay_register_, ASSAY_PLUGIN_NAME)(::assay::Registrar&); \
  void ASSAY_JOIN(assay_register_, ASSAY_PLUGIN_NAME)(::assay::Registrar & registrar)

/// ASSAY_PLUGIN_SHUTDOWN() { ... }: optional; runs before the worker's main returns.
#define ASSAY_PLUGIN_SHUTDOWN()                          \
  void ASSAY_JOIN(assay_shutdown_, ASSAY_PLUGIN_NAME)(); \
  void ASSAY_JOIN(assay_shutdown_, ASSAY_PLUGIN_NAME)()
