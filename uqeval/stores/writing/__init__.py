"""New stores: conversion, and writing by one process or several."""
