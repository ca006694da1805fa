# find_package(windrow) defines the targets windrow::windrow, the shared library, and windrow::static.
get_filename_component(windrow_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET windrow::windrow)
  add_library(windrow::windrow SHARED IMPORTED)
  set_target_properties(windrow::windrow PROPERTIES
    IMPORTED_LOCATION "${windrow_prefix}/lib/libwindrow.so"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_INCLUDE_DIRECTORIES "${windrow_prefix}/include")
  add_library(windrow::static STATIC IMPORTED)
  set_target_properties(windrow::static PROPERTIES
    IMPORTED_LOCATION "${windrow_prefix}/lib/libwindrow.a"
    INTERFACE_LINK_LIBRARIES "pthread;dl;m"
    INTERFACE_INCLUDE_DIRECTORIES "${windrow_prefix}/include")
endif()
