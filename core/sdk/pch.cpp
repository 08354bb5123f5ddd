// Owner of the precompiled header; holds nothing else.
