// Package chart finds, downloads and keeps packed charts.
//
// A chart is known by the sha256 of its packed bytes and by nothing else: names and versions lead to a digest,
// a digest leads to the same files forever. Every caller gets its own copy of a chart, because Helm's actions
// change the chart they are given (dependency processing).
package chart
